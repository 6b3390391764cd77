"""Traces of the PyTorch profiler (Kineto, Chrome trace JSON), read event by event into columns."""

from gpu_report.load.trace.trace_file import load_trace

__all__ = ["load_trace"]
