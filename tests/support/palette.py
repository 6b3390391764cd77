"""The page's palette as people with other eyes see it: contrast, and how far colours lie apart.

Colour vision deficiencies are simulated with the matrices of Machado, Oliveira and Fernandes (2009), severity 1.0, in
linear sRGB. Distances are Euclidean in OKLab (Ottosson 2020), times 100: about 2 is just noticeable side by side.
Contrast is that of WCAG 2.2, (lighter + 0.05) / (darker + 0.05).
"""

import re
from collections.abc import Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EYES: Mapping[str, Floats] = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def read_palette(css: str) -> tuple[Mapping[str, Floats], Mapping[str, Floats]]:
    """Return the style sheet's opaque colours by name, as linear RGB: the light ones and the dark ones."""
    pairs = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", css)
    return {name: linear(light) for name, light, _ in pairs}, {name: linear(dark) for name, _, dark in pairs}


def linear(colour: str) -> Floats:
    """Return #rrggbb as linear RGB, 0 to 1."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def contrast(one: Floats, other: Floats) -> float:
    """Return WCAG's contrast ratio of two colours."""
    darker, lighter = sorted(float(colour @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def nearest(colours: Mapping[str, Floats]) -> tuple[float, str]:
    """Return the least distance of any two colours to any eyes, and whose that is."""
    return min(
        (distance(a, b, matrix), f"{first} and {second} ({eyes})")
        for eyes, matrix in EYES.items()
        for (first, a), (second, b) in combinations(colours.items(), 2)
    )


def distance(one: Floats, other: Floats, eyes: Floats) -> float:
    """Return how far two colours lie apart to some eyes."""
    return float(np.linalg.norm(_oklab(eyes @ one) - _oklab(eyes @ other))) * 100


def lightness(colour: Floats, eyes: Floats) -> float:
    """Return how light a colour is to some eyes, 0 to 1."""
    return float(_oklab(eyes @ colour)[0])


def hues_apart(one: Floats, other: Floats) -> float:
    """Return how far the hues of two colours lie apart, 0 to 180 degrees."""
    first, second = (np.degrees(np.arctan2(*_oklab(colour)[:0:-1])) for colour in (one, other))
    return float(abs((first - second + 180) % 360 - 180))


def _oklab(colour: Floats) -> Floats:
    return _TO_OKLAB @ np.cbrt(_TO_LMS @ np.clip(colour, 0, 1))
