"""Rules: what makes the calls of a model slow, or keeps its GPU from more of them."""

from collections.abc import Callable, Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules.inference.between_calls import time_between_calls
from gpu_report.analyse.rules.inference.call_parts import slow_postprocessing, slow_preprocessing
from gpu_report.analyse.rules.inference.devices import on_the_cpu, pytorch_on_the_cpu
from gpu_report.analyse.rules.inference.gpu_work import full_precision, small_calls
from gpu_report.analyse.rules.inference.image_work import augmented_calls, enlarged_images
from gpu_report.analyse.rules.inference.memory import growing_memory_of_calls
from gpu_report.analyse.rules.inference.pauses import slow_after_pauses
from gpu_report.analyse.rules.inference.rare_calls import rare_calls
from gpu_report.analyse.rules.inference.reloaded_models import rebuilt_models, reloaded_models
from gpu_report.analyse.rules.inference.repeated import repeated_images
from gpu_report.analyse.rules.inference.rest_of_calls import rest_of_calls
from gpu_report.analyse.rules.inference.shapes import new_shapes
from gpu_report.analyse.rules.inference.shared import few_cores, other_process_on_gpu, side_by_side
from gpu_report.analyse.rules.inference.threads import new_threads
from gpu_report.model import Finding

Rule = Callable[[Context], Sequence[Finding]]

RULES: tuple[Rule, ...] = (
    few_cores,
    other_process_on_gpu,
    time_between_calls,
    reloaded_models,
    rebuilt_models,
    rare_calls,
    slow_preprocessing,
    slow_postprocessing,
    rest_of_calls,
    augmented_calls,
    enlarged_images,
    new_shapes,
    new_threads,
    repeated_images,
    small_calls,
    full_precision,
    slow_after_pauses,
    on_the_cpu,
    pytorch_on_the_cpu,
    side_by_side,
    growing_memory_of_calls,
)


def inference_findings(context: Context) -> list[Finding]:
    """Return what is to be said about calls, nothing where no model was called."""
    return [finding for rule in RULES for finding in rule(context)] if context.cached(judged_models) else []
