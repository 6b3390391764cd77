"""The command line: a module a command; here their group, and errors as one line and an exit code.

Each command imports its stage in its body: `--help` and `record` must not pay for pandas, plotly or jinja2.
"""

import io
import os
import sys
import traceback
from typing import NoReturn

import click

from gpu_report import __version__
from gpu_report.cli.commands.baseline import baseline
from gpu_report.cli.commands.bench import bench
from gpu_report.cli.commands.check import check
from gpu_report.cli.commands.compare import compare
from gpu_report.cli.commands.demo import demo
from gpu_report.cli.commands.doctor import doctor
from gpu_report.cli.commands.export import export
from gpu_report.cli.commands.fleet import fleet
from gpu_report.cli.commands.import_logs import import_logs
from gpu_report.cli.commands.profile import profile
from gpu_report.cli.commands.record import record
from gpu_report.cli.commands.render import render
from gpu_report.cli.commands.serve import serve
from gpu_report.cli.commands.stop import stop
from gpu_report.cli.commands.summary import summary
from gpu_report.cli.common import say
from gpu_report.cli.help_text import COMPLETION, KEEP_LINES, CommandList, HelpContext, examples
from gpu_report.cli.option_hints import with_hint
from gpu_report.errors import ERROR_AS_JSON, GpuReportError, InputError, error_as_json
from gpu_report.terminal import plain

COMMANDS = (
    *(record, render, summary, serve, import_logs, export, stop, profile),
    *(doctor, demo, compare, check, baseline, bench, fleet),
)
INTERRUPTED = 130  # 128 + SIGINT, as shells say it


EXAMPLES = examples(
    "gpu-report record -- yolo detect train data=data.yaml model=yolo26n.pt",
    "gpu-report render report.html",
    "gpu-report demo --open",
)


@click.group(
    cls=CommandList,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"{EXAMPLES}\n\n{KEEP_LINES}{COMPLETION}",
)
@click.version_option(__version__, prog_name="gpu-report")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Record the GPU while YOLO trains or predicts. Learn when it was idle, why, and what to change."""
    del debug  # main() looks for it: it concerns errors, which click does not hand to us


for command in COMMANDS:
    cli.add_command(command)
for command in (cli, *COMMANDS, *baseline.commands.values(), *fleet.commands.values()):
    command.context_class = HelpContext


def main() -> NoReturn:
    """Run the command line: errors are one line on stderr and an exit code, a traceback only with --debug."""
    debug = "--debug" in sys.argv[1:2]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal of another encoding than UTF-8 gets `?`, not an error
    try:
        cli.main(standalone_mode=False, prog_name="gpu-report")
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        (with_hint(error) if isinstance(error, click.NoSuchOption) else error).show()
        sys.exit(error.exit_code)
    except GpuReportError as error:
        _show(error, str(error), debug=debug)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us is no longer there
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the last resort: a user never sees a traceback unasked
        if isinstance(error, FileNotFoundError) and not _is_somewhere():
            _show(error, "the working directory no longer exists: change into another one", debug=debug)
            sys.exit(InputError.exit_code)
        if isinstance(error, OSError) and error.strerror:  # a full disk under our output, a name that is too long
            what = error.filename if error.filename is not None else "what was printed could not be written in full"
            _show(error, f"{error.strerror}: {what}", debug=debug)
            sys.exit(InputError.exit_code)
        _show(
            error,
            f"internal error: {type(error).__name__}: {error}. Please report what this says: `gpu-report --debug ...`",
            debug=debug,
        )
        sys.exit(GpuReportError.exit_code)
    sys.exit(0)


def _is_somewhere() -> bool:
    """Tell whether there is a working directory: relative paths have none to begin from where it was removed."""
    try:
        return bool(os.getcwd())  # noqa: PTH109 - Path.cwd is the same
    except OSError:
        return False


def _show(error: BaseException, line: str, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    line = " ".join(line.split())
    if os.environ.get(ERROR_AS_JSON):
        click.echo(error_as_json(plain(line)), err=True)
    else:
        say(line)
