"""Options that people guess, and what the command calls them."""

import click

# What other tools call it, and ours; the first that the command has is named.
OTHER_NAMES = {
    "--gate": ("--fail-on",),
    "--gates": ("--fail-on",),
    "--threshold": ("--fail-on",),
    "--out": ("--output", "--html"),
    "--output": ("--html",),
    "--report": ("--html",),
    "--format": ("--formats", "--json"),
    "--json": ("--format",),
    "--markdown": ("--format",),
}


def with_hint(error: click.NoSuchOption) -> click.NoSuchOption:
    """Return the error with the option that was probably meant, where the command has it; unchanged without.

    What is known to be meant counts more than what is only spelt alike.
    """
    known = {name for param in error.ctx.command.params for name in param.opts} if error.ctx else set()
    meant = [name for name in OTHER_NAMES.get(error.option_name, ()) if name in known]
    if not meant:
        return error
    return click.NoSuchOption(error.option_name, f"{error.message} Use {meant[0]!r}.", ctx=error.ctx)
