"""The tables of a job: its nodes with their clocks, and its ranks."""

from gpu_report.gpu_words import gpu_number
from gpu_report.model import Job, JobNode, NodeRun, RankRow
from gpu_report.render.formatting import duration, quantity, share
from gpu_report.render.page.views.tables import TextTable
from gpu_report.wording import MISSING, brief_seconds, gpu_models

NODE_HEAD = (
    "Node",
    "Host",
    "GPUs",
    "Ranks",
    "Busy in training",
    "Clock offset",
    "Offset error",
    "UTC error",
    "Recorded",
)
NODE_NUMERIC = (False, False, False, False, True, True, True, True, True)
RANK_HEAD = ("Rank", "Node", "GPU", "Training an epoch", "Waiting for data", "GPU utilisation", "Slowest in")
LARGE_S = 60.0
REFERENCE = "reference"


def node_table(job: Job) -> TextTable:
    """Return the nodes; one that is missing, or cannot be read, says so."""
    first = job.nodes[0]
    rows = [_node(node, node.run, is_first=node is first) if node.run else _missing(node) for node in job.nodes]
    return TextTable(NODE_HEAD, NODE_NUMERIC, tuple(rows))


def _missing(node: JobNode) -> tuple[str, ...]:
    return (node.name, absence(node), *([MISSING] * (len(NODE_HEAD) - 2)))


def absence(node: JobNode) -> str:
    """Return why a node has no readings, in a word or two."""
    return "not readable" if node.unread else "missing"


def _node(node: JobNode, run: NodeRun, *, is_first: bool) -> tuple[str, ...]:
    clock = node.clock
    return (
        node.name,
        run.host or MISSING,
        gpu_words(run),
        _ranks(run),
        quantity(run.busy_pct, "%"),
        REFERENCE if is_first else ahead_words(None if clock is None else clock.ahead_s),
        "" if is_first else MISSING if clock is None or clock.residual_s is None else brief_seconds(clock.residual_s),
        MISSING if clock is None or clock.error_s is None else brief_seconds(clock.error_s),
        duration(run.duration_s),
    )


def gpu_words(run: NodeRun) -> str:
    """Return a node's GPUs: 8 x NVIDIA H200."""
    return gpu_models(gpu.name for gpu in run.gpus) or MISSING


def _ranks(run: NodeRun) -> str:
    """Return a node's ranks: 8 to 15."""
    numbers = sorted({each.rank for each in run.ranks} or {each.rank for each in run.job.ranks})
    if not numbers:
        return MISSING
    whole = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 1
    return f"{numbers[0]} to {numbers[-1]}" if whole else ", ".join(map(str, numbers))


def ahead_words(ahead_s: float | None) -> str:
    """Return how far a clock is ahead of the first node's: +0.40 s."""
    if ahead_s is None:
        return MISSING
    size = abs(ahead_s)
    words = duration(size) if size >= LARGE_S else brief_seconds(size)
    return ("\u2212" if ahead_s < 0 else "+") + words


def clock_words(job: Job) -> str:
    """Return how the clocks were brought together."""
    if not job.aligned:
        return f"clocks could not be aligned, so that no cause is followed from node to node: {job.why_not_aligned}"
    if len(job.recorded) == 1:
        return "one node was recorded, so there is no other clock"
    clocks = [node.clock for node, _ in job.recorded[1:] if node.clock is not None]
    fits = [clock.residual_s for clock in clocks if clock.residual_s is not None]
    if not fits:
        return "clocks are not corrected, because the nodes share no epochs to compare them by"
    count = min(clock.barriers for clock in clocks if clock.barriers)
    return f"clocks are aligned by {count} barriers of the training, to within {brief_seconds(max(fits))}"


def rank_rows(job: Job) -> list[tuple[str, ...]]:
    """Return the ranks, the one that waited longest for data first."""
    ordered = sorted(job.ranks, key=lambda row: (-round(row.last_share or 0.0, 2), -(row.data_wait_s or 0.0), row.rank))
    return [_rank(row) for row in ordered]


def _rank(row: RankRow) -> tuple[str, ...]:
    return (
        str(row.rank),
        row.node,
        MISSING if row.gpu is None else gpu_number(row.gpu),
        brief_seconds(row.train_s),
        brief_seconds(row.data_wait_s),
        quantity(row.busy_pct, "%"),
        MISSING if row.last_share is None else f"{share(row.last_share)} of {row.epochs} epochs",
    )
