"""`doctor`: what can be recorded on this machine."""

import click


@click.command()
def doctor() -> None:
    """Say what can be recorded here, what cannot, why, and what would change it."""
    from gpu_report.record import examine

    for found in examine():
        click.echo(f"{'yes' if found.ok else 'no ':3}  {found.name}: {found.finding}")
        if found.remedy:
            click.echo(f"       -> {found.remedy}")
