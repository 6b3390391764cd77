"""How far the wall clock may be from UTC, as the kernel keeps it for NTP: adjtimex(2), asked and never set."""

import ctypes
import sys

NANOSECONDS = 0x2000  # STA_NANO: `offset` is in ns, else in us (linux/timex.h)
UNSYNCHRONISED = 0x0040  # STA_UNSYNC
FAILED = -1
SOURCE = "adjtimex"
MICRO, NANO = 1e-6, 1e-9


class _Timex(ctypes.Structure):
    """struct timex of Linux on 64 bits (linux/timex.h)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("rest", ctypes.c_byte * 256),
    )


def read_clock() -> dict[str, float | bool | None] | None:
    """Return schema.JOB_CLOCK in seconds; None where the kernel cannot be asked. It sets nothing (`modes` is 0)."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        state = _Timex()
        if ctypes.CDLL(None).adjtimex(ctypes.byref(state)) == FAILED:
            return None
    except (OSError, AttributeError):  # another libc, or a sandbox
        return None
    synchronised = not state.status & UNSYNCHRONISED
    return {
        "synchronised": synchronised,
        "offset_s": round(state.offset * (NANO if state.status & NANOSECONDS else MICRO), 9),
        # of a clock that nobody sets, the kernel's 16 s is no measurement
        "max_error_s": round(state.maxerror * MICRO, 6) if synchronised else None,
        "estimated_error_s": round(state.esterror * MICRO, 6) if synchronised else None,
    }
