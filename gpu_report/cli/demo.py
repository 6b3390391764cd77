"""The real run that comes with gpu-report: in the installed package, or in the checkout's sample_runs/."""

from pathlib import Path

from gpu_report import schema
from gpu_report.errors import InputError

NAME = "yolo26m-stalls"


def demo_run() -> Path:
    """Return the folder of the shipped run; InputError naming both places when it is in neither."""
    package = Path(__file__).parents[1]
    places = (package / "demo_run", package.parent / "sample_runs" / NAME)
    for place in places:
        if (place / schema.SAMPLES_CSV).is_file():
            return place
    raise InputError(f"the demo run is in neither {places[0]} nor {places[1]}: install gpu-report again")
