"""Where the pages' templates, styles and scripts are, wherever gpu-report is installed."""

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from gpu_report.errors import GpuReportError
from gpu_report.extras import AGAIN

PAGE_TEMPLATE = "report.html.j2"
SMALL_LIBRARY = "vendor/plotly-basic/plotly-basic.min.js"  # a quarter of the whole; `make chart-library` puts it there
WHOLE_LIBRARY = "package_data/plotly.min.js"  # within plotly.py


def find_templates() -> Path:
    """Return the templates' folder: the installed one, else the checkout's; GpuReportError naming both."""
    package = Path(str(files("gpu_report")))
    places = (package / "templates", package.parent / "templates")
    for place in places:
        if (place / PAGE_TEMPLATE).is_file():
            return place
    raise GpuReportError(
        f"{PAGE_TEMPLATE} is neither in {places[0]} nor in {places[1]}. To have gpu-report complete, {AGAIN}"
    )


def find_chart_library(templates: Path) -> Path | None:
    """Return the file of plotly.js, the smaller one where that is there; None where neither is. Imports nothing."""
    plotly = find_spec("plotly")
    whole = [] if plotly is None or plotly.origin is None else [Path(plotly.origin).parent / WHOLE_LIBRARY]
    return next((path for path in (templates / SMALL_LIBRARY, *whole) if path.is_file()), None)
