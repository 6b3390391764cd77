"""`bench`: the same model in several formats, precisions and batch sizes, side by side."""

from __future__ import annotations

import json
import sys
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gpu_report import schema
from gpu_report.cli.common import CountRange, FiniteRange, NamedPath, say, say_notes
from gpu_report.cli.help_text import examples
from gpu_report.cli.option_groups import as_one
from gpu_report.cli.output_files import PAGES, OutputFile, refuse_twice, refuse_unwritable, write
from gpu_report.errors import InputError, NotComparableError, UsageError
from gpu_report.extras import command_for
from gpu_report.terminal import is_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_report.bench.plan import BenchPlan
    from gpu_report.model import BenchResult

PAGE = Path("bench.html")
BEST = Path("weights/best.pt")  # where ultralytics keeps the best weights of a training, within its folder
INTERVAL_S = 0.5  # between samples: a warm-up, whose energy is read, lasts some 3 s
NEEDED = ("torch", "ultralytics")
OF_ANY_RUN = frozenset({"models", "limit", "json_path", "markdown_path"})  # what a stored benchmark takes as well
FINISHED = frozenset({0, 1})  # exit codes of the benchmark: any other is of a signal


class Listed(click.ParamType):  # type: ignore[type-arg] # generic in some versions of click
    """Words separated by commas, each once."""

    name = "list"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the words; wrong use without one."""
        if isinstance(value, tuple):
            return value
        words = tuple(dict.fromkeys(filter(None, (word.strip() for word in str(value).split(",")))))
        return words or self.fail(f"{value!r} names nothing", param, ctx)


# By the fields of bench.plan.Plan: it is made once it is clear that a measurement is asked for.
options_of_plan = as_one(
    "grid",
    dict,
    (
        click.option(
            "--formats",
            type=Listed(),
            default="pt",
            metavar="LIST",
            help="pt, torchscript, onnx, openvino, engine. Default: pt.",
        ),
        click.option("--batch", "batches", type=Listed(), default="1", metavar="LIST", help="Batch sizes. Default: 1."),
        click.option(
            "--imgsz", type=CountRange(32, 8192), default=640, metavar="PIXELS", help="Image size. Default: 640."
        ),
        click.option("--half", is_flag=True, help="Each variant in FP16 as well."),
        click.option(
            "--source", default="synthetic", metavar="FOLDER", help="Images to predict on. Default: synthetic ones."
        ),
        click.option("--data", default=None, metavar="YAML", help="Also validate each variant on this data set."),
        click.option(
            "--device", default=None, metavar="DEVICE", help="As for YOLO. Default: the first GPU, else the CPU."
        ),
        click.option(
            "--seconds",
            type=FiniteRange(0.5, 86400),
            default=20.0,
            metavar="SECONDS",
            help="How long each variant is measured at most. Default: 20.",
        ),
    ),
)


@click.command(
    epilog=examples(
        "gpu-report bench yolo26n.pt yolo26s.pt --formats pt,onnx,engine --half",
        "gpu-report bench best.pt --batch 1,8,32 --limit p95:10ms report.html",
        "gpu-report bench best.pt --source images/ --data data.yaml",
        "gpu-report bench gpu-runs/20261125-101500      # its page once more",
    )
)
@click.argument("models", nargs=-1, required=True, metavar="MODEL... [OUTPUT.html]")
@options_of_plan
@click.option("--limit", default=None, metavar="LIMIT", help="Latency that the choice must keep, such as p95:10ms.")
@click.option("--json", "json_path", type=OutputFile(), default=None, metavar="FILE", help="Also write JSON here.")
@click.option("--markdown", "markdown_path", type=OutputFile(), default=None, metavar="FILE", help="Also Markdown.")
@click.option(
    "--output",
    type=NamedPath(file_okay=False),
    default=None,
    metavar="FOLDER",
    help="The run folder. Default: gpu-runs/<UTC time>.",
)
def bench(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    models: tuple[str, ...],
    grid: dict[str, Any],
    limit: str | None,
    json_path: Path | None,
    markdown_path: Path | None,
    output: Path | None,
) -> None:
    """Measure models in several formats, precisions and batch sizes, and say which to choose.

    What is missing is exported into ./gpu-bench. Variants are measured in short turns, so that a busy machine slows
    all of them alike. MODEL is weights, a model's YAML, an exported file, a folder of a training such as
    runs/detect/train, or the run folder of an earlier benchmark. OUTPUT.html is the page to write. Default: bench.html.
    """
    from gpu_report.analyse.bench.choice import parse_limit
    from gpu_report.bench.plan import BenchPlan

    models, page = _page_of(models)
    folder = _recorded(models)
    kept = folder or output
    refuse_twice((page, json_path, markdown_path, None if kept is None else kept / schema.BENCH_JSON))
    most = None if limit is None else parse_limit(limit)
    code = 0
    if folder is not None:
        _refuse_options_of_a_measurement(folder)
    else:
        plan = BenchPlan(tuple(map(_weights_of, models)), **{**grid, "batches": _sizes(grid["batches"])})
        _refuse(plan)
        refuse_unwritable((page, json_path, markdown_path))
        folder, code = _record(plan, output)

    from gpu_report.analyse.bench import analyse_bench
    from gpu_report.load import load_bench

    run = load_bench(folder)
    say_notes(run.problems)
    result = analyse_bench(run, most)
    _write(result, page, json_path, markdown_path)
    if code not in FINISHED:
        say("not finished: this is what was measured until then")
        sys.exit(code)
    _refuse_without_choice(result)


def _refuse_without_choice(result: BenchResult) -> None:
    """Raise NotComparableError where nothing says which variant to choose."""
    if not any(row.measured for row in result.rows):
        raise NotComparableError("no variant could be measured: the reasons are above")
    if not any(row.may_be_chosen for row in result.rows):
        raise NotComparableError("no variant can be chosen: the reasons are above")
    if result.choice is None and result.is_too_short:
        raise NotComparableError("too few calls to say which variant keeps the limit")


def _page_of(models: Sequence[str]) -> tuple[tuple[str, ...], Path]:
    """Return the models, and the page that the last word names."""
    if Path(models[-1]).suffix.lower() not in PAGES:
        return tuple(models), PAGE
    if len(models) == 1:
        raise UsageError(f"no model is named, only the page {models[0]}: gpu-report bench MODEL {models[0]}")
    return tuple(models[:-1]), OutputFile().convert(models[-1], None, None)


def _recorded(models: Sequence[str]) -> Path | None:
    """Return the run folder that was named in the place of a model."""
    folders = [Path(model) for model in models if (Path(model) / schema.BENCH_JSON).is_file()]
    if folders and len(models) > 1:
        raise UsageError(f"{folders[0]} is the run folder of a benchmark: name it alone")
    return folders[0] if folders else None


def _weights_of(model: str) -> str:
    """Return a model, or of a folder of a training the weights that ultralytics kept there as its best, and say so."""
    best = Path(model) / BEST
    if not best.is_file() or (Path(model) / schema.RUN_JSON).is_file():
        return model
    say(f"{model} is a folder of a training: {best} is measured")
    return str(best)


def _refuse_options_of_a_measurement(folder: Path) -> None:
    """Raise UsageError where an option asks for a measurement, and what was named is one that was made."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is ParameterSource.COMMANDLINE and parameter.name not in OF_ANY_RUN:
            raise UsageError(
                f"{parameter.opts[0]} is for a new measurement, and {folder} is a stored one: name the model instead"
            )


def _sizes(batches: Sequence[str]) -> tuple[int, ...]:
    if not all(size.isascii() and size.isdigit() and 0 < int(size) <= 4096 for size in batches):
        raise UsageError(f"--batch {','.join(batches)}: batch sizes are whole numbers from 1 to 4096")
    return tuple(dict.fromkeys(map(int, batches)))


def _refuse(plan: BenchPlan) -> None:
    """Raise UsageError for what cannot be: an unknown format, a package or data that is not there.

    InputError where a model is not there.
    """
    from gpu_report.bench.known_names import unknown_data, unknown_models
    from gpu_report.bench.sources import SYNTHETIC, image_files
    from gpu_report.bench.variants import FORMATS

    if unknown := [name for name in plan.formats if name not in FORMATS]:
        raise UsageError(f"--formats {unknown[0]}: there are {', '.join(FORMATS)}")
    if missing := [name for name in NEEDED if util.find_spec(name) is None]:
        raise UsageError(f"bench needs {missing[0]} in this Python: {command_for('yolo')}")
    for model in plan.models:
        if (Path(model) / schema.RUN_JSON).is_file():
            raise UsageError(f"{model} is a recording without a benchmark: gpu-report render report.html {model}")
    if plan.source != SYNTHETIC and (not Path(plan.source).is_dir() or not image_files(Path(plan.source))):
        raise UsageError(f"--source {plan.source} is no folder with images")
    if plan.data is not None and unknown_data(plan.data):
        raise UsageError(f"--data {plan.data} does not exist, and ultralytics has no data set of that name")
    if unknown := unknown_models(plan.models):
        raise InputError(f"{unknown[0]} does not exist, and ultralytics has no model of that name")


def _record(plan: BenchPlan, output: Path | None) -> tuple[Path, int]:
    """Run the benchmark within a recording; return the run folder and the exit code, or end where there is none."""
    from gpu_report.record import RecordOptions, record_run

    if output is not None and (output / schema.RUN_JSON).exists():
        raise UsageError(f"{output} holds a recording: name another folder with --output")
    command = (sys.executable, "-m", "gpu_report.bench", json.dumps(plan.as_fields()))
    options = RecordOptions(
        command=command, interval_s=INTERVAL_S, output=output, detail=True, stacks=False, own_report=True
    )
    folders: list[Path] = []
    code = record_run(options, say=say, begun=folders.append)
    if not folders or not (folders[0] / schema.BENCH_JSON).is_file():
        sys.exit(code or 1)
    return folders[0], code


def _write(result: BenchResult, page: Path, json_path: Path | None, markdown_path: Path | None) -> None:
    """Write the files and print what to choose."""
    from gpu_report.render.bench.bench_json import render_bench_json
    from gpu_report.render.bench.markdown import render_bench_markdown

    if json_path is not None:
        write(json_path, render_bench_json(result))
    if markdown_path is not None and not _is_kept(markdown_path, result):
        write(markdown_path, render_bench_markdown(result))

    from gpu_report.render.bench.page import render_bench_html
    from gpu_report.render.bench.terminal import render_bench_text

    click.echo(render_bench_text(result, colour=is_terminal(sys.stdout)), nl=False)
    if not _is_kept(page, result):
        write(page, render_bench_html(result))
        click.echo(f"\n{page}")


def _is_kept(path: Path, result: BenchResult) -> bool:
    """Tell whether a file stays as it was, and say so: figures of an earlier benchmark are worth more than none.

    JSON is for programs, which learn from it what failed.
    """
    kept = path.is_file() and bool(path.stat().st_size) and not any(row.measured for row in result.rows)
    if kept:
        say(f"{path} is kept as it was: nothing could be measured")
    return kept
