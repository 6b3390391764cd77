"""The command line: wires the stages together, and turns errors into one line and an exit code.

Each command imports its stage in its body: `--help` and `record` must not pay for pandas, plotly or jinja2.
"""

from __future__ import annotations

import io
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gpu_report import __version__, run_folder
from gpu_report.cli.common import (
    analysed,
    examined,
    folder_of,
    option_of_run,
    options_of_analysis,
    read,
    run_of,
    say,
    say_notes,
)
from gpu_report.cli.compare import baseline, check, compare
from gpu_report.cli.output_files import OutputFile, refuse_twice, write
from gpu_report.errors import GpuReportError, UsageError
from gpu_report.terminal import Progress, plain

if TYPE_CHECKING:
    from concurrent.futures import Future

    from gpu_report.model import Analysis, Run
    from gpu_report.record import RecordOptions
    from gpu_report.render import BlankPage, Packing

INTERRUPTED = 130  # 128 + SIGINT, as shells say it


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="gpu-report")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
def cli(debug: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Record the GPU while a YOLO run trains; learn when it was idle and what stood beside it."""
    del debug  # main() looks for it: it concerns errors, which click does not hand to us


@cli.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--duration",
    type=click.FloatRange(0, min_open=True),
    default=None,
    help="Seconds; until Ctrl-C or the command's end when left out.",
)
@click.option(
    "--interval", type=click.FloatRange(0.02, 3600), default=1.0, show_default=True, help="Seconds between two samples."
)
@click.option("--gpus", default="", help="Indices or UUIDs, separated by commas; all when left out.")
@click.option(
    "--output", type=click.Path(path_type=Path), default=None, help="The run folder; gpu-runs/<UTC time> when left out."
)
@click.option(
    "--yolo",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder of the YOLO run (its results.csv); found by itself when left out.",
)
@click.option(
    "--kernel-log",
    type=click.Path(path_type=Path),
    default=None,
    help="A file that kernel messages are appended to, where the kernel log itself cannot be read.",
)
@click.option("--detail", is_flag=True, help="Also record power every 20 ms, where the driver keeps it.")
@click.option(
    "--no-inject", is_flag=True, help="Do not load our callbacks into the command; phases are then seen from outside."
)
@click.option("--background", is_flag=True, help="Return at once and record on, also after logout; `stop` ends it.")
@click.option("--with-parent", type=int, default=None, hidden=True, help="End when this parent process does.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    duration: float | None,
    interval: float,
    gpus: str,
    output: Path | None,
    yolo: Path | None,
    kernel_log: Path | None,
    detail: bool,  # noqa: FBT001 - click passes flags so
    no_inject: bool,  # noqa: FBT001 - click passes flags so
    background: bool,  # noqa: FBT001 - click passes flags so
    with_parent: int | None,
    command: tuple[str, ...],
) -> NoReturn:
    """Record GPUs, host, kernel log and epochs into a run folder.

    With a COMMAND after -- it is started, recorded until it ends, and its exit code is passed on:

      gpu-report record -- yolo detect train data=data.yaml model=yolo26n.yaml
    """
    from gpu_report.record import RecordOptions, record_run  # noqa: PLC0415 - see the module docstring

    if with_parent is not None:
        from gpu_report.notebook import die_with  # noqa: PLC0415 - see the module docstring

        die_with(with_parent)
    chosen = tuple(filter(None, (part.strip() for part in gpus.split(","))))
    if gpus and not chosen:
        raise UsageError(f"--gpus {gpus} names no GPU")
    if not command and "--" in sys.argv:
        raise UsageError("there is no command after --: leave it out to watch without one")
    options = RecordOptions(
        command=command,
        duration_s=duration,
        interval_s=interval,
        gpus=chosen,
        output=output,
        yolo=yolo,
        kernel_log=kernel_log,
        detail=detail,
        inject=not no_inject,
    )
    sys.exit(_record_in_background(options) if background else record_run(options, say=say))


@cli.command()
@click.argument("output", type=OutputFile(before_run=True))
@click.argument("run", type=click.Path(path_type=Path), required=False)
@option_of_run
@click.option(
    "--json",
    "json_path",
    type=OutputFile(),
    default=None,
    help="Also write summary.json here.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
@click.option(
    "--redact",
    "redacted",
    is_flag=True,
    help="For sharing: replace hosts, users, folders, commands, addresses and serial numbers by placeholders.",
)
@options_of_analysis
def render(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    output: Path,
    run: Path | None,
    named: Path | None,
    json_path: Path | None,
    open_it: bool,  # noqa: FBT001 - click passes flags so
    redacted: bool,  # noqa: FBT001 - click passes flags so
    drop_percent: float,
    drop_seconds: float,
    price_per_hour: float | None,
) -> None:
    """Render a run as one self-contained HTML file.

    OUTPUT is the file to write; folders on the way to it that are missing are made. RUN is a run folder or a samples
    CSV, the newest under ./gpu-runs when left out.
    """
    refuse_twice((output, json_path))
    with Progress("starting ...") as progress:
        folder = folder_of(run_of(run, named))
        blank = _begin_blank_page()
        recorded = read(folder, progress)
        packing = _begin_packing(recorded)
        analysis = examined(recorded, drop_percent, drop_seconds, price_per_hour, progress)
        progress.step(f"writing {output} ...")
        if redacted:
            from gpu_report.render.redaction.redact import redact  # noqa: PLC0415 - see the module docstring

            analysis = redact(analysis)
        _write_report(analysis, output, json_path, packing, blank)
    click.echo(f"{output}: {plain(analysis.verdict)}")
    if open_it:
        click.launch(str(output))


@cli.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
@option_of_run
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@options_of_analysis
def summary(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    run: Path | None,
    named: Path | None,
    form: str,
    drop_percent: float,
    drop_seconds: float,
    price_per_hour: float | None,
) -> None:
    """Print what the report says, for a terminal, a machine or a pull request.

    RUN is a run folder or a samples CSV, the newest under ./gpu-runs when left out.
    """
    with Progress("starting ...") as progress:
        analysis = analysed(run_of(run, named), drop_percent, drop_seconds, price_per_hour, progress)
    if form == "json":
        click.echo(_summary_json(analysis), nl=False)
        return
    from gpu_report.render.run.terminal import render_markdown, render_text  # noqa: PLC0415 - see the module docstring

    click.echo(
        render_text(analysis, colour=sys.stdout.isatty()) if form == "text" else render_markdown(analysis), nl=False
    )


@cli.command("import")
@click.argument("logs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--from",
    "source",
    type=click.Choice(["nvidia-smi"]),
    default="nvidia-smi",
    show_default=True,
    help="The tool that wrote the logs.",
)
@click.option("--output", type=click.Path(path_type=Path), required=True, help="The run folder to make.")
@click.option(
    "--yolo", type=click.Path(path_type=Path), default=None, help="The folder of the YOLO run (args.yaml, results.csv)."
)
@click.option(
    "--kernel-log",
    type=click.Path(path_type=Path),
    default=None,
    help="A kernel log: dmesg in any of its forms, kmsg, journalctl, kern.log.",
)
@click.option(
    "--timezone",
    default=None,
    help="Zone of time stamps that carry none, such as Europe/Berlin; the local one when left out.",
)
@click.option(
    "--boot-time", default=None, help="When that machine was booted (ISO 8601 or seconds since 1970), for plain dmesg."
)
@click.option(
    "--train-start",
    default=None,
    help="When training started (ISO 8601 or seconds since 1970), if results.csv lost its file time.",
)
def import_(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    logs: tuple[Path, ...],
    source: str,
    output: Path,
    yolo: Path | None,
    kernel_log: Path | None,
    timezone: str | None,
    boot_time: str | None,
    train_start: str | None,
) -> None:
    """Make a run folder from what another tool logged."""
    from gpu_report.imports import import_nvidia_smi  # noqa: PLC0415 - see the module docstring

    del source  # one so far
    notes = import_nvidia_smi(
        logs, output, yolo=yolo, kernel_log=kernel_log, timezone=timezone, boot_time=boot_time, train_start=train_start
    )
    say_notes(notes)
    say(f"imported into {output}: now `gpu-report render report.html {output}`")


@cli.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
def stop(run: Path | None) -> None:
    """End a recorder that was started with --background (the newest under ./gpu-runs when RUN is left out)."""
    from gpu_report.record.lifecycle import background  # noqa: PLC0415 - see the module docstring

    folder = run if run is not None else background.running(Path(run_folder.RUNS_DIR))
    background.stop(folder)
    click.echo(folder)


@cli.command()
def doctor() -> None:
    """Say what can be recorded here, what cannot, why, and what would change it."""
    from gpu_report.record import examine  # noqa: PLC0415 - see the module docstring

    for found in examine():
        click.echo(f"{'yes' if found.ok else 'no ':3}  {found.name}: {found.finding}")
        if found.remedy:
            click.echo(f"       -> {found.remedy}")


@cli.command()
@click.argument("output", type=OutputFile(), default=Path("demo.html"))
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
def demo(output: Path, open_it: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Render a real YOLO26 run on an H200 that comes with gpu-report."""
    from gpu_report.cli.demo import demo_run  # noqa: PLC0415 - see the module docstring

    with Progress("starting ...") as progress:
        blank = _begin_blank_page()
        analysis = analysed(demo_run(), 50.0, 10.0, None, progress)
        progress.step(f"writing {output} ...")
        _write_report(analysis, output, None, blank=blank)
    click.echo(f"{output}: {plain(analysis.verdict)}")
    if open_it:
        click.launch(str(output))


def _record_in_background(options: RecordOptions) -> int:
    """Start the same recording detached, and print its folder."""
    from gpu_report.record.lifecycle import background  # noqa: PLC0415 - see the module docstring

    if options.command:
        raise UsageError(
            "--background watches; to start a command that outlives the shell: nohup gpu-report record -- ..."
        )
    click.echo(background.start(options))
    return 0


for command_of_gates in (compare, check, baseline):
    cli.add_command(command_of_gates)


def main() -> NoReturn:
    """Run the command line: errors are one line on stderr and an exit code, a traceback only with --debug."""
    debug = "--debug" in sys.argv[1:2]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal of another encoding than UTF-8 gets `?`, not an error
    try:
        cli.main(standalone_mode=False, prog_name="gpu-report")
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except GpuReportError as error:
        _show(error, str(error), debug=debug)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has gone; nobody is left to be told
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the last resort: a user never sees a traceback unasked
        _show(
            error,
            f"internal error: {type(error).__name__}: {error} (run `gpu-report --debug ...` and report it)",
            debug=debug,
        )
        sys.exit(GpuReportError.exit_code)
    sys.exit(0)


def _show(error: BaseException, line: str, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    say(" ".join(line.split()))


def _summary_json(analysis: Analysis) -> str:
    import json  # noqa: PLC0415 - only two commands write it

    from gpu_report.render.run.summary_json import build_summary  # noqa: PLC0415 - see the module docstring

    return json.dumps(build_summary(analysis), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _begin_blank_page() -> Future[BlankPage]:
    from gpu_report.render import begin_blank_page  # noqa: PLC0415 - see the module docstring

    return begin_blank_page()


def _begin_packing(run: Run) -> Packing:
    from gpu_report.render import begin_packing  # noqa: PLC0415 - see the module docstring

    return begin_packing(run)


def _write_report(
    analysis: Analysis,
    output: Path,
    json_path: Path | None,
    packing: Packing | None = None,
    blank: Future[BlankPage] | None = None,
) -> None:
    from gpu_report.render import render_html  # noqa: PLC0415 - see the module docstring

    write(output, render_html(analysis, packing, blank.result() if blank else None))
    if json_path is not None:
        write(json_path, _summary_json(analysis))
