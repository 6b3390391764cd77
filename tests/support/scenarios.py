"""Faults of a GPU or its driver, as scripts for the fake library: shared by tests/faults and benchmarks/faults.py.

Seconds are those of the script. `dark` names the readings that nobody can have during the fault, as (gpu, quantity);
every other GPU and quantity can be read all the time.
"""

from dataclasses import dataclass, field

UTILISATION, POWER = "utilisation", "power"
ALL = (UTILISATION, POWER)
BEGINS_S, ENDS_S, SECONDS = 3.0, 6.0, 10.0


@dataclass(frozen=True)
class Scenario:
    """One fault: what happens, what the fake plays, what is dark from when to when (None: for good).

    `late` says that readings come after all, only late.
    """

    name: str
    lines: tuple[str, ...]
    gpus: int = 2
    dark: frozenset[tuple[int, str]] = field(default_factory=frozenset)
    begins_s: float = BEGINS_S
    ends_s: float | None = None
    seconds: float = SECONDS
    reason: str = ""
    library: bool = True
    late: bool = False

    @property
    def opens(self) -> bool:
        """Say whether NVML can be opened at all."""
        return self.library and not any("nvmlInit" in line for line in self.lines)


def _both(*gpus: int) -> frozenset[tuple[int, str]]:
    return frozenset((gpu, quantity) for gpu in gpus for quantity in ALL)


POWER_CALL = "nvmlDeviceGetPowerUsage"
UTILISATION_CALL = "nvmlDeviceGetUtilizationRates"

SCENARIOS = (
    Scenario("a GPU is lost for good", ("at=3 gpu1.error=15",), dark=_both(1), reason="GPU is lost"),
    Scenario(
        "a GPU is lost and comes back",
        ("at=3 gpu1.error=15", "at=6 gpu1.error=0"),
        dark=_both(1),
        ends_s=ENDS_S,
        seconds=17.0,  # a lost GPU is asked again every 10 s only
        reason="GPU is lost",
    ),
    Scenario("one GPU of eight is lost", ("at=3 gpu5.error=15",), gpus=8, dark=_both(5), reason="GPU is lost"),
    Scenario("a GPU requires a reset", ("at=3 gpu1.error=16",), dark=_both(1), reason="GPU requires"),
    Scenario(
        "no permission for power, for a while",
        (f"at=3 error.{POWER_CALL}=4", f"at=6 error.{POWER_CALL}=0"),
        dark=frozenset({(0, POWER), (1, POWER)}),
        ends_s=ENDS_S,
        reason="Insufficient Permissions",
    ),
    Scenario(
        "utilisation is not supported",
        (f"error.{UTILISATION_CALL}=3",),
        dark=frozenset({(0, UTILISATION), (1, UTILISATION)}),
        begins_s=0.0,
        reason="Not Supported",
    ),
    Scenario(
        "an unknown error for half a second",
        (f"at=3 gpu1.error.{POWER_CALL}=999", f"at=3.5 gpu1.error.{POWER_CALL}=0"),
        dark=frozenset({(1, POWER)}),
        ends_s=3.5,
        reason="Unknown Error",
    ),
    Scenario(
        "all of a GPU's calls fail, unknown error",
        ("at=3 gpu1.error=999", "at=6 gpu1.error=0"),
        dark=_both(1),
        ends_s=ENDS_S,
        reason="Unknown Error",
    ),
    Scenario(
        "a call on one GPU takes 3 s",
        (f"at=3 gpu1.delay.{POWER_CALL}=3", f"at=3.5 gpu1.delay.{POWER_CALL}=0"),
        dark=_both(1),
        ends_s=7.0,  # a call that begins at 3 s is back at 6 s, and a margin of a second before that it is not
        late=True,
    ),
    Scenario("a call on one GPU never returns", ("at=3 gpu1.hang=1",), dark=_both(1)),
    Scenario("calls on every GPU never return", ("at=3 hang=1",), dark=_both(0, 1)),
    Scenario("a GPU vanishes from the bus", ("at=3 count=1", "at=3 gpu1.error=15"), dark=_both(1), reason="lost"),
    Scenario("the driver's library does not fit its module", ("error.nvmlInitWithFlags=18",)),
    Scenario("opening NVML never returns", ("hang.nvmlInitWithFlags=1",)),
    Scenario("there is no NVML", (), library=False),
)
