"""What the live page's server answers: fixed addresses, no path of a request is ever opened."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from gpu_report import __version__
from gpu_report.live.follower import Follower
from gpu_report.live.web.access import POLICY
from gpu_report.live.web.metrics import exposition
from gpu_report.template_files import find_chart_library, find_templates

SCRIPTS = ("live", "words", "chart", "stream")
FOR_EVER = {"Cache-Control": "public, max-age=86400"}  # of what comes with gpu-report
NO_STORE = {"Cache-Control": "no-store"}


class Page:
    """The addresses of one follower."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._templates = find_templates()
        made = Environment(
            loader=FileSystemLoader(self._templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._page = made.get_template("live/live.html.j2")
        self._library = find_chart_library(self._templates)
        # the full bundle adds a style sheet for maps, which POLICY forbids, unless an element with its id is there
        text = self._library.read_text(encoding="utf-8") if self._library else ""
        self._style_ids = re.findall(r'getElementById\("([0-9a-f]{64})"\)', text)

    def app(self) -> Starlette:
        """Return the application; it follows the run folder as long as it runs."""
        own = [
            Route(f"/{name}.js", _file_of(self._templates / "live" / f"{name}.js", "text/javascript"))
            for name in SCRIPTS
        ]
        styles = [self._templates / "report.css", self._templates / "live" / "live.css"]
        routes = [
            Route("/", self.page),
            Route("/events", self.events),
            Route("/gpu-status", self.status),
            Route("/metrics", self.metrics),
            Route("/healthz", self.health),
            Route("/report.html", self.report),
            Route("/report.css", _file_of(styles[0], "text/css")),
            Route("/live.css", _file_of(styles[1], "text/css")),
            *own,
        ]
        if self._library:
            routes.append(Route("/plotly.js", _file_of(self._library, "text/javascript")))
        made = Starlette(routes=routes, lifespan=self._following)
        made.router.redirect_slashes = False  # to an address without the prefix of a proxy
        return made

    @contextlib.asynccontextmanager
    async def _following(self, _app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(self._follower.follow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._follower.close()

    async def page(self, _request: Request) -> Response:
        """Answer with the page; once the run is over and its report is made, with that."""
        if self._follower.reports.is_final:
            return await self.report(_request)
        name = self._follower.run.folder.name
        html = self._page.render(name=name, version=__version__, style_ids=self._style_ids)
        return Response(html, media_type="text/html", headers={"Content-Security-Policy": POLICY, **NO_STORE})

    async def events(self, request: Request) -> Response:
        """Tell what happens, as server-sent events."""
        messages = self._follower.messages(request.headers.get("last-event-id", ""))
        return StreamingResponse(messages, media_type="text/event-stream", headers=NO_STORE)

    async def status(self, _request: Request) -> Response:
        """Tell the state of the run now, as JSON."""
        return JSONResponse(await self._follower.status(), headers=NO_STORE)

    async def metrics(self, request: Request) -> Response:
        """Tell the newest readings for Prometheus."""
        said = await self._follower.status()
        body, content_type = exposition(lambda: said, request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type, **NO_STORE})

    async def health(self, _request: Request) -> Response:
        """Whether this server works, whatever the recorder does."""
        return PlainTextResponse("ok\n", headers=NO_STORE)

    async def report(self, _request: Request) -> Response:
        """Answer with the report of what there is so far."""
        is_final = (await self._follower.status())["state"] == "ended" and not self._follower.run.is_recorded
        path = await self._follower.reports.page(is_final=is_final)
        if path is None:
            why = self._follower.reports.error or "there is nothing to report yet"
            return PlainTextResponse(f"The report could not be made: {why}\n", 503, headers=NO_STORE)
        return FileResponse(path, media_type="text/html", headers=NO_STORE)


def _file_of(path: Path, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_request: Request) -> Response:
        return FileResponse(path, media_type=media_type, headers=FOR_EVER)

    return endpoint
