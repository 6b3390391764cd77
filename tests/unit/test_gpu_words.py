"""A GPU is called by its index, a MIG device as `--gpus` takes it; nowhere else is one made a word."""

import re

import pytest

from gpu_report.gpu_words import gpu_number, gpu_words, gpus_words
from tests.conftest import REPOSITORY


@pytest.mark.parametrize(
    ("index", "words"), [(0, "GPU 0"), (7, "GPU 7"), (1000, "GPU 0:0"), (4001, "GPU 3:1"), (None, "a GPU")]
)
def test_a_mig_device_is_its_gpus_number_and_its_own(index, words):
    assert gpu_words(index) == words


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ([], ""),
        ([1], "GPU 1"),
        ([0, 1], "GPUs 0 and 1"),
        ([0, 1, 2], "GPUs 0 to 2"),
        ([0, 1000, 1001], "GPUs 0, 0:0 and 0:1"),
        ([1000, 1001, 1002], "GPUs 0:0 to 0:2"),
    ],
)
def test_several_are_listed(gpus, words):
    assert gpus_words(gpus) == words


def test_the_pages_scripts_say_the_same():
    for path in ("templates/js/words.js", "templates/live/words.js"):
        assert "Math.floor(index / 1000)" in (REPOSITORY / path).read_text()
    assert gpu_number(12_003) == "11:3"


def test_no_other_place_makes_words_of_an_index():
    """By the names that an index has in the source: GPU {gpu}, GPU {series.gpu}, GPU {index}, GPU ${index}."""
    of_index = re.compile(r"GPU (?:\{\{ |\$?\{)(?:\w+\.)*(?:gpu|index|late|waiting|upper|lower) ?\}")
    sources = [*(REPOSITORY / "gpu_report").rglob("*.py"), *(REPOSITORY / "templates").rglob("*.j*")]
    found = [
        f"{path.name}: {line.strip()}"
        for path in sources
        if "imports" not in path.parts
        for line in path.read_text().splitlines()
        if of_index.search(line)
    ]
    assert found == []
