"""The palette holds for all kinds of eyes and on both themes; how it is measured stands in tests/support/palette.py."""

import re
from collections.abc import Mapping
from itertools import combinations, pairwise

import pytest
from support.palette import EYES, Floats, contrast, distance, hues_apart, lightness, nearest, read_palette

from gpu_report.render.page.blank import assets
from gpu_report.template_files import find_templates

TEXT_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
LINE_CONTRAST = 3.0  # WCAG 2.2, 1.4.11

# Sets of colours that stand beside each other, and how far apart they must be (2 is just noticeable side by side). With
# eight GPUs colour alone tells little: dashes, the strip of each and pointing at a name do the rest.
APART = {
    "two GPUs": (20.0, tuple(f"gpu-{i}" for i in range(2))),
    "four GPUs": (8.0, tuple(f"gpu-{i}" for i in range(4))),
    "eight GPUs": (3.9, tuple(f"gpu-{i}" for i in range(8))),
    "phases of training": (
        5.6,
        tuple(f"phase-{n}" for n in ("startup", "train", "validation", "checkpoint", "final-evaluation", "idle")),
    ),
    "parts of an epoch": (
        5.6,
        ("phase-startup", "phase-train", "phase-validation", "phase-checkpoint", "data", "main-process"),
    ),
    "whose code it is": (7.5, tuple(f"flame-{n}" for n in ("own", "loader", "gpu", "ranks", "yolo", "library"))),
    "pressure": (7.9, ("cpu_pressure_pct", "io_pressure_pct", "memory_pressure_pct")),
    "reads": (7.9, ("disk_read_mib_s", "trainer_read_mib_s")),
    "levels of a strip": (11.0, tuple(f"heat-{i}" for i in range(5))),
}
GROUNDS = ("background", "surface", "sunken")
LINES = (
    *(f"gpu-{i}" for i in range(8)),
    *("host", "loss", "lr", "low", "cpu_pressure_pct", "io_pressure_pct", "memory_pressure_pct"),
    *("disk_read_mib_s", "trainer_read_mib_s", "field-line"),
)
# What is written on what, within marks and bands.
WRITTEN = (
    *(("on-phase", f"phase-{n}") for n in ("train", "startup", "validation", "checkpoint", "final-evaluation", "idle")),
    *(("on-phase", f"flame-{n}") for n in ("own", "loader", "gpu", "ranks", "yolo", "library")),
    ("on-low", "low"),
    *((severity, f"{severity}-soft") for severity in ("critical", "warning", "info")),
)


CAUSES_APART = 5.6
# One thing, wherever it is shown: in the bar of causes, as a phase, in the flame graph.
SAME = (
    ("work", "phase-train"),
    ("work", "flame-gpu"),  # the CPU waits because the GPU works
    ("data", "flame-loader"),
    ("main-process", "flame-own"),
    ("others", "flame-ranks"),
)
SAME_HUE = 15.0  # degrees
CAUSES = ("work", "short-gaps", "data", "main-process", "gpu-limit", "others")
PHASES = ("phase-validation", "phase-checkpoint", "phase-final-evaluation")
OTHER_HUE = 18.0
_RULE = r"((?:[.][\w-]+(?:, )?)+) {{ fill: {}; }}"


def looks(property_of: str, prefix: str) -> Mapping[str, str]:
    """Return what the style sheet fills each cause (or part of an epoch) with, by its name."""
    style = assets.read_style(find_templates())
    rules = re.findall(_RULE.format(property_of), style)
    return {
        name.removeprefix(prefix): value
        for names, value in rules
        for name in re.findall(r"[\w-]+", names)
        if name.startswith(prefix)
    }


def test_no_two_causes_look_the_same_to_any_eyes(palette: Mapping[str, Floats]) -> None:
    """Either their colours lie apart, or these are the same and the textures over them are not."""
    colours, textures = looks(r"var\(--([\w-]+)\)", "fill-"), looks(r"url\(#([\w-]+)\)", "over-")
    assert len(colours) > 20
    assert set(textures) <= set(colours)
    look = [(colour, textures.get(cause, "plain")) for cause, colour in colours.items()]
    assert sorted(look) == sorted(set(look))
    found, which = nearest({name: palette[name] for name in colours.values()})
    assert found >= CAUSES_APART, which


def test_epochs_and_the_timeline_have_the_colours_of_the_ledger() -> None:
    colours, parts = looks(r"var\(--([\w-]+)\)", "fill-"), looks(r"var\(--([\w-]+)\)", "part-")
    for part in ("validation", "checkpoint"):
        assert parts[part] == colours[part] == f"phase-{part}"
    assert parts["train"] == "phase-train"
    assert parts["wait"] == colours["input-cpu"]
    assert parts["held"] == colours["main-process"] == colours["trainer-blocked"]


def test_one_thing_has_one_hue_and_no_other_has_it(palette: Mapping[str, Floats]) -> None:
    for one, other in SAME:
        assert hues_apart(palette[one], palette[other]) <= SAME_HUE, (one, other)
    for one, other in combinations((*CAUSES, *PHASES), 2):
        assert hues_apart(palette[one], palette[other]) >= OTHER_HUE, (one, other)


@pytest.fixture(scope="module", params=["light", "dark"])
def palette(request: pytest.FixtureRequest) -> Mapping[str, Floats]:
    light, dark = read_palette(assets.read_style(find_templates()))
    return light if request.param == "light" else dark


@pytest.mark.parametrize("kind", APART)
def test_colours_that_stand_beside_each_other_lie_apart_to_all_eyes(palette: Mapping[str, Floats], kind: str) -> None:
    least, names = APART[kind]
    found, which = nearest({name: palette[name] for name in names})
    assert found >= least, which


def test_utilisation_gets_darker_or_brighter_by_equal_steps_to_all_eyes(palette: Mapping[str, Floats]) -> None:
    stops = [palette[f"heat-{i}"] for i in range(5)]
    for eyes in EYES.values():
        steps = [distance(one, other, eyes) for one, other in pairwise(stops)]
        assert max(steps) <= 1.3 * min(steps)
        light = [lightness(stop, eyes) for stop in stops]
        assert light in (sorted(light), sorted(light, reverse=True))


def test_words_can_be_read(palette: Mapping[str, Floats]) -> None:
    pairs = [
        (word, ground)
        for word in ("text", "muted", "accent", "critical", "warning", "info", "low")
        for ground in GROUNDS
    ]
    found = {pair: contrast(palette[pair[0]], palette[pair[1]]) for pair in (*pairs, *WRITTEN)}
    assert {pair: ratio for pair, ratio in found.items() if ratio < TEXT_CONTRAST} == {}


def test_lines_can_be_seen(palette: Mapping[str, Floats]) -> None:
    found = {name: contrast(palette[name], palette["surface"]) for name in LINES}
    assert {name: ratio for name, ratio in found.items() if ratio < LINE_CONTRAST} == {}
