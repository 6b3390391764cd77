"""A job for a terminal: its verdict, and what each node comes to. Controls from outside are not sent."""

from gpu_report.model import Job
from gpu_report.render.job.rows import REFERENCE, ahead_words, gpu_words
from gpu_report.terminal import plain


def render_job_text(job: Job) -> str:
    """Return the verdict and a line for each node."""
    lines = [" ".join(said.text for said in job.verdict)]
    for node in job.nodes:
        if node.run is None:
            lines.append(f"{node.name}: {f'could not be read: {node.unread}' if node.unread else 'missing'}")
            continue
        busy = "" if node.run.busy_pct is None else f", busy {node.run.busy_pct:.0f} % of training"
        clock = node.clock.ahead_s if node.clock else None
        words = REFERENCE if node is job.nodes[0] else ahead_words(clock)
        lines.append(f"{node.name}: {node.run.host or 'host unknown'}, {gpu_words(node.run)}{busy}, clock {words}")
    return "\n".join(map(plain, lines))
