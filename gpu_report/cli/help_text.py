"""What `--help` looks like: no line is broken off, each command has examples, what most people need comes first."""

from __future__ import annotations

from collections.abc import Iterable

import click

FIRST = ("record", "render", "summary", "compare", "doctor")  # in this order; the others stand under "More"
KEEP_LINES = "\b\n"  # click's mark of a paragraph that it does not wrap anew
LONG = 1000  # characters: no first sentence is cut
COMPLETION = """Tab completion: add one line to ~/.bashrc, ~/.zshrc, or your config.fish
  eval "$(_GPU_REPORT_COMPLETE=bash_source gpu-report)"
  eval "$(_GPU_REPORT_COMPLETE=zsh_source gpu-report)"
  _GPU_REPORT_COMPLETE=fish_source gpu-report | source"""

HYPHEN, UNBROKEN = "-", "\u2011"


class Formatter(click.HelpFormatter):
    """click's own, but that no line ends within a name such as gpu-runs or --baseline-dir."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace(HYPHEN, UNBROKEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list of terms with what they mean."""
        super().write_dl([(term, words.replace(HYPHEN, UNBROKEN)) for term, words in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """Return all that was written."""
        return super().getvalue().replace(UNBROKEN, HYPHEN)


class HelpContext(click.Context):
    """A context whose help is written by Formatter."""

    formatter_class = Formatter


def examples(*lines: str) -> str:
    """Return the end of a command's help: commands as they are typed, of at most 76 characters."""
    return KEEP_LINES + "\n".join(("Examples:", *(f"  {line}" for line in lines)))


class CommandList(click.Group):
    """A group of commands, of which `--help` has those of FIRST first; each with its whole first sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in two sections, or in one where none of them is of FIRST."""
        names = self.list_commands(ctx)
        first = [name for name in FIRST if name in names]
        rest = [name for name in names if name not in first]
        for title, chosen in (("Commands", first), ("More" if first else "Commands", rest)):
            if chosen:
                with formatter.section(title):
                    formatter.write_dl([(name, self._short(ctx, name)) for name in chosen])

    def _short(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(LONG) if command else ""
