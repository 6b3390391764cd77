"""Student's t distribution, without a library of statistics."""

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=1024)
def student_quantile(share: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution, for a share over one half: its density is integrated.

    With t = sqrt(degrees) tan(angle) the density is proportional to cos(angle) to the power of degrees - 1.
    """
    angle = np.linspace(0, np.pi / 2, 20_001)
    density = np.cos(angle) ** (degrees - 1)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(degrees**0.5 * np.tan(np.interp(2 * share - 1, area / area[-1], angle)))
