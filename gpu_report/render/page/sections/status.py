"""How the verdict is coloured."""

from gpu_report.catalogue import UNEXPLAINED
from gpu_report.model import HEALTHY_PCT, Analysis, Finding


def status(unexpected: tuple[Finding, ...], analysis: Analysis) -> str:
    """Return how the verdict is coloured: by the worst finding; without a bad one good, where the GPUs had work.

    Where nothing trained there is nothing that could be won. Calls are good where nothing would make them faster: a
    service that waits for most of the time is none the worse for it.
    """
    severities = {finding.severity for finding in unexpected}
    worst = next((s for s in ("critical", "warning") if s in severities), "")
    worked = analysis.is_validation or _trained(analysis)
    if worst or not (analysis.gpus or not analysis.is_training) or not worked:
        return worst or "unknown"
    if analysis.is_validation:
        return "room" if any(sentence.advice for sentence in analysis.verdict.sentences) else "good"
    if analysis.is_inference:
        return "room" if any(finding.advice for finding in unexpected) else "good"
    if any(sentence.kind == "record" and sentence.about == UNEXPLAINED for sentence in analysis.verdict.sentences):
        return "room"  # nobody saw what it waited for
    return "good" if analysis.verdict.is_healthy or 100 * _worked(analysis) >= HEALTHY_PCT else "room"


def _trained(analysis: Analysis) -> bool:
    """Say whether anything trained or was called: an epoch or a call is known of, or the GPUs had any work."""
    return bool(analysis.epochs or analysis.served) or any(
        row.name == "work" and row.gpu_seconds > 0 for row in analysis.ledger
    )


def _worked(analysis: Analysis) -> float:
    """Return the share of the ledger's training time in which the GPUs worked; 0 where there was none."""
    work = sum(row.gpu_seconds for row in analysis.ledger if row.name == "work")
    lost = sum(
        row.gpu_seconds for row in analysis.ledger if not row.expected and row.name not in {"work", "unmeasured"}
    )
    return work / (work + lost) if work > 0 else 0.0
