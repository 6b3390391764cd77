"""Serves models in several variants, in turn, within a recording: what is built, in which order, what agrees.

`python -m gpu_report.bench PLAN` is the command that `gpu-report bench` records. It starts a process for each variant,
whose calls our callbacks keep like those of any program, and writes bench.json into the run folder.
"""
