"""`doctor`: what can be recorded on this machine."""

import click

from gpu_report.cli.help_text import examples
from gpu_report.terminal import apart, plain


@click.command(epilog=examples("gpu-report doctor"))
def doctor() -> None:
    """Check what can be recorded on this machine.

    For everything that cannot be recorded, it shows why, and the command that would change it.
    """
    from gpu_report.record import examine

    for found in examine():
        click.echo(f"{'yes' if found.ok else 'no ':3}  {found.name}: {found.finding}")
        for part, command in apart(found.remedy):
            click.echo(f"{'          ' if command else '       -> '}{plain(part)}")
