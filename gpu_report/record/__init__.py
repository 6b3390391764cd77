"""Records GPUs, host, kernel log and YOLO's epochs into a run folder while a training runs."""

from gpu_report.record.doctor import DoctorCheck, examine
from gpu_report.record.lifecycle.record_run import record_run
from gpu_report.record.options import RecordOptions

__all__ = ["DoctorCheck", "RecordOptions", "examine", "record_run"]
