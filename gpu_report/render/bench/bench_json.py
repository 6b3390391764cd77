"""A benchmark as JSON: everything that its page says, as numbers."""

from dataclasses import asdict
from typing import Any

from gpu_report import __version__
from gpu_report.model import BenchResult, BenchRow, BoxAgreement
from gpu_report.render.machine_values import json_ready, json_text

SCHEMA_VERSION = 1


def render_bench_json(result: BenchResult) -> str:
    """Return a benchmark as JSON text."""
    run = result.run
    limit = None if result.limit is None else {"of": result.limit.of, "ms": result.limit.ms}
    names = [row.variant.name for row in result.rows]
    fields = {
        "schema_version": SCHEMA_VERSION,
        "tool": f"gpu-report {__version__}",
        "run": run.path,
        "device": run.device,
        "gpu": run.gpu,
        "versions": run.versions,
        "plan": run.plan,
        "limit": limit,
        "choice": None if result.choice is None else names[result.choice],
        "finished": run.finished,
        "choice_is_sure": result.sure,
        "as_fast_perhaps": [names[place] for place in result.rivals],
        "host": None if result.host is None else asdict(result.host),
        "lowest_latency": None if result.quickest is None else names[result.quickest],
        "variants": [_row(row) for row in result.rows],
        "problems": run.problems,
    }
    return json_text(json_ready(fields))


def _row(row: BenchRow) -> dict[str, Any]:
    variant = row.variant
    return {
        "name": variant.name,
        "model": variant.short,
        "format": variant.format,
        "half": variant.half,
        "batch": variant.batch,
        "failed": None if variant.failed_in is None else {"stage": variant.failed_in, "reason": variant.reason},
        "turns": len(variant.turns),
        "images_per_s": None if row.images_per_s is None else asdict(row.images_per_s),
        "latency": None if row.latency is None else asdict(row.latency),
        "full_speed": None if row.full_speed is None else asdict(row.full_speed),
        "parts_ms": {
            "preprocess": row.preprocess_ms,
            "inference": row.inference_ms,
            "postprocess": row.postprocess_ms,
        },
        "joules_per_image": row.joules,
        "warm_up": {"calls": row.warm_up_calls, "seconds": row.warm_up_s, "first_call_ms": row.first_call_ms},
        "build_s": variant.build_s,
        "built_earlier": variant.reused,
        "first_result_s": variant.load_s,
        "file_mib": variant.size_mib,
        "memory_mib": variant.memory_mib,
        "gpu_memory_mib": variant.gpu_memory_mib,
        "settings": variant.settings,
        "outputs": None if variant.agreement is None else _agreement(variant.agreement),
        "map50_95": variant.map50_95,
        "unreadable_images": variant.unreadable_images,
        "remarks": row.remarks,
    }


def _agreement(agreed: BoxAgreement) -> dict[str, Any]:
    """Return how far a variant's boxes are those of its reference."""
    return {
        "reference": agreed.reference,
        "images": agreed.images,
        "boxes": agreed.boxes,
        "same_share": agreed.share,
        "largest_score_difference": agreed.score_difference,
    }
