"""What a trace of PyTorch's profiler says of a training: pure functions over the model's `Trace`."""

from gpu_report.analyse.trace.analysis import analyse_trace

__all__ = ["analyse_trace"]
