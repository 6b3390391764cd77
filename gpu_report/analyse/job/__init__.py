"""A job of several nodes: each node's analysis cut down to what is kept of it, and what all of them say together."""

from gpu_report.analyse.job.job import analyse_job
from gpu_report.analyse.job.node import node_run

__all__ = ["analyse_job", "node_run"]
