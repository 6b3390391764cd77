"""A job of several nodes as one HTML page that needs nothing else: same look, policy and escaping as the report."""

from gpu_report import __version__
from gpu_report.catalogue import RULES, cause_words, row_words
from gpu_report.model import Finding, Job, JobFinding, JobNode, Nccl, NodeRun
from gpu_report.render.formatting import duration, elapsed, sentence, share, utc, with_amounts_unbroken
from gpu_report.render.job.rows import RANK_HEAD, clock_words, node_table, rank_rows
from gpu_report.render.job.strips import timeline
from gpu_report.render.job.titles import TITLES
from gpu_report.render.job.view import JobFindingView, JobView, NodeView
from gpu_report.render.nccl_words import nccl_words
from gpu_report.render.page.blank.small_page import small_page
from gpu_report.render.page.sections.findings import SEVERITY_WORDS
from gpu_report.render.page.views.tables import TextTable
from gpu_report.wording import counted, where_words

TEMPLATE = "job.html.j2"
STYLE = "job.css"
SCRIPTS = ("settings", "job")
MOST_RANKS = 32  # rows of the table: a screen
MOST_ROWS = 5  # of a node's ledger
MOST_FINDINGS = 4  # of a node: its own report has all


def render_job_html(job: Job) -> str:
    """Return a job as one HTML page that works offline and loads nothing."""
    return small_page(TEMPLATE, STYLE, compose_job(job), SCRIPTS)


def compose_job(job: Job) -> JobView:
    """Return what the page says about a job."""
    first, *rest = [said.text for said in job.verdict] or [""]
    late = next((finding.node for finding in job.findings if finding.rule == "straggler"), None)
    ranks = rank_rows(job)
    named = f"Job {job.id}" if job.id else "Job"
    nodes = counted(len(job.nodes), "node")
    return JobView(
        title=f"{named}: {nodes}, {counted(job.gpu_count, 'GPU')}",
        subtitle=f"{utc(job.start_wall_s)}, {duration(job.duration_s)}",
        status=_status(job),
        verdict=with_amounts_unbroken(first),
        verdict_rest=with_amounts_unbroken(" ".join(rest)),
        findings=tuple(_job_finding(finding) for finding in job.findings),
        timeline=timeline(job, late),
        nodes=node_table(job),
        clocks=sentence(clock_words(job)),
        nccl=_nccl(job),
        ranks=TextTable(RANK_HEAD, (True, False, False, True, True, True, True), tuple(ranks[:MOST_RANKS])),
        more_ranks=f"{counted(len(ranks) - MOST_RANKS, 'more rank')} in the JSON (`--json`)"
        if len(ranks) > MOST_RANKS
        else "",
        each_node=tuple(_node(number, node, late) for number, node in enumerate(job.nodes)),
        notes=job.notes,
        tool=f"gpu-report {__version__}",
    )


def _nccl(job: Job) -> str:
    """Return what NCCL's files of all nodes say, empty without any."""
    words = nccl_words(Nccl(tuple(each for _, run in job.recorded for each in run.nccl.processes)))
    return sentence(f"NCCL {words}") if words else ""


def _status(job: Job) -> str:
    if any(finding.severity == "critical" for finding in job.findings):
        return "critical"
    return "warning" if any(finding.severity == "warning" for finding in job.findings) else "good"


def _job_finding(finding: JobFinding) -> JobFindingView:
    whole = finding.rule != "stall-from-node"
    return JobFindingView(
        id=finding.id,
        title=TITLES[finding.rule],
        severity=finding.severity,
        severity_word=SEVERITY_WORDS[finding.severity],
        summary=sentence(finding.summary),
        where=", ".join(map(where_words, finding.where)),
        advice=sentence(finding.advice) if finding.advice else "",
        when="" if whole else f"{elapsed(finding.start_t_s)} to {elapsed(finding.end_t_s)}",
    )


def _node(number: int, node: JobNode, late: str | None) -> NodeView:
    run = node.run
    if run is None:
        return NodeView(
            f"node-{number}-details",
            node.name,
            "",
            with_amounts_unbroken(f"Its folder could not be read: {sentence(node.unread)}")
            if node.unread
            else "Nothing was recorded of it, or its folder was not given.",
            (),
            (),
            "",
        )
    is_waiting = late not in {None, node.name}
    waits = f" It waits for {late} in each epoch." if is_waiting else ""
    return NodeView(
        id=f"node-{number}-details",
        name=node.name,
        host=run.host or "",
        verdict=with_amounts_unbroken(f"{run.verdict}{waits}"),
        findings=tuple(_of_node(finding, node) for finding in run.findings[:MOST_FINDINGS]),
        ledger=_ledger(run),
        command=f"gpu-report render {node.name.replace(' ', '-')}.html {run.path}",
    )


def _of_node(finding: Finding, node: JobNode) -> JobFindingView:
    return JobFindingView(
        id="",
        title=RULES[finding.rule].title,
        severity=finding.severity,
        severity_word=SEVERITY_WORDS[finding.severity],
        summary=sentence(finding.summary),
        where=", ".join(map(where_words, finding.where[:2])),
        advice="" if finding.cause is None else cause_words(finding.cause.name),
        when=elapsed(max(finding.start_t_s + node.shift_s, 0.0)),
    )


def _ledger(run: NodeRun) -> tuple[tuple[str, str], ...]:
    rows = sorted(run.ledger, key=lambda row: -row.share)[:MOST_ROWS]
    return tuple((row_words(row.name), share(row.share)) for row in rows if row.share > 0)
