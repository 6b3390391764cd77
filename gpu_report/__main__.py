"""`python -m gpu_report`."""

from gpu_report.cli import main

main()
