"""Stage 2: a run folder (or a bare samples CSV) becomes a `Run`. Whatever is missing or torn is survived and said."""

from gpu_report.load.bench import load_bench
from gpu_report.load.run import load_run

__all__ = ["load_bench", "load_run"]
