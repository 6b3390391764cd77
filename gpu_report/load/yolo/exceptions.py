"""What an exception in the training said of itself: fixed formats and numbers become codes, its words stay words."""

import re
from collections.abc import Mapping
from typing import Any, Final

from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.model import NAN_GRADIENT, Frame, Raised, RefusedAllocation

LONGEST_MESSAGE: Final = 300
MOST_BASES: Final = 8
MOST_FRAMES: Final = 32

# How torch words the end of a loader's worker, which has no type of its own; the signal is as strsignal() words it.
_WORKER = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? [\d, ]{1,80}\) "
    r"(?:is killed by signal: (?P<signal>[A-Z][a-z]*(?: [a-z]+){0,3})|exited unexpectedly)"
)
_SIGNALS: Final = {
    "Killed": "SIGKILL",
    "Bus error": "SIGBUS",
    "Segmentation fault": "SIGSEGV",
    "Terminated": "SIGTERM",
    "Aborted": "SIGABRT",
}
# ... and a NaN gradient, for which autograd (engine.cpp) looks only while anomaly detection is on.
_NAN_GRADIENT = re.compile(r"Function '\w{1,200}' returned nan values in its \d{1,4}th output\.?")
# ... and an allocation for which there was no memory: of torch 2.1 and later, then of those before.
_SIZE = r"(\d{1,9}(?:\.\d{1,2})?) (bytes|KiB|MiB|GiB)"
_ASKED = re.compile(rf"^CUDA out of memory\. Tried to allocate {_SIZE}")
_FREE = re.compile(rf"(?:; | of which ){_SIZE} (?:is )?free[.;]")
_ALLOWED = re.compile(rf" {_SIZE} allowed;")
_MIB: Final = {"bytes": 2.0**-20, "KiB": 2.0**-10, "MiB": 1.0, "GiB": 2.0**10}
_LIBRARY_CODE = re.compile(r"\b(?:CUDNN|CUBLAS|CUFFT|CUSPARSE|CUSOLVER)_STATUS_[A-Z_]{2,60}\b")
_CUDA = re.compile(r"CUDA error: (?P<said>[^.\n]{1,100}?)(?:$|[.\n]| (?:CUDA kernel errors|Search for|Compile with))")
ANY_CUDA_ERROR: Final = "cudaError"
# cudaError_t (driver_types.h), by number and by the words of cudaGetErrorString: torch before 2.8 has only these.
_CUDA_ERRORS: Final = (
    (2, "out of memory", "cudaErrorMemoryAllocation"),
    (46, "CUDA-capable device(s) is/are busy or unavailable", "cudaErrorDevicesUnavailable"),
    (209, "no kernel image is available for execution on the device", "cudaErrorNoKernelImageForDevice"),
    (214, "uncorrectable ECC error encountered", "cudaErrorECCUncorrectable"),
    (700, "an illegal memory access was encountered", "cudaErrorIllegalAddress"),
    (710, "device-side assert triggered", "cudaErrorAssert"),
    (716, "misaligned address", "cudaErrorMisalignedAddress"),
    (719, "unspecified launch failure", "cudaErrorLaunchFailure"),
    (999, "unknown error", "cudaErrorUnknown"),
)
_BY_NUMBER: Final = {number: name for number, _, name in _CUDA_ERRORS}
_BY_WORDS: Final = {words: name for _, words, name in _CUDA_ERRORS}


def raised(ended: Mapping[str, Any]) -> Raised:
    """Return what an `ended` line tells of the exception beside its type."""
    said = one_line(ended.get("message"))
    bases = ended.get("bases")
    names = [one_line(name) for name in bases[:MOST_BASES]] if isinstance(bases, list) else []
    worker = _WORKER.search(said)
    return Raised(
        message=said,
        bases=tuple(name for name in names if name),
        code=one_line(ended.get("errno")) or _nan_code(said) or _cuda_code(whole(ended.get("cuda_error")), said),
        loader_worker=_SIGNALS.get(worker["signal"] or "", "exited") if worker else None,
        raised_in=one_line(ended.get("raised_in")) or None,
        frames=_frames(ended.get("frames")),
        refused=_refused(said),
    )


def _frames(told: object) -> tuple[Frame, ...]:
    """Return the frames that an exception came through, innermost first; none where one of them cannot be read."""
    if not isinstance(told, list):
        return ()
    found = []
    for each in told[:MOST_FRAMES]:
        file, line, function = (
            each if isinstance(each, list) and len(each) == len(("file", "line", "function")) else ("", 0, "")
        )
        frame = Frame(one_line(file), whole(line) or 0, one_line(function))
        if not frame.file or not frame.function or frame.line < 0:
            return ()
        found.append(frame)
    return tuple(found)


def one_line(value: object) -> str:
    """Return a text on one line, without what no terminal prints; empty where it is none."""
    words = " ".join((text(value) or "").split())
    return "".join(letter for letter in words if letter.isprintable())[:LONGEST_MESSAGE]


def _refused(said: str) -> RefusedAllocation | None:
    asked_mib = _mib(_ASKED.search(said))
    return (
        None
        if asked_mib is None
        else RefusedAllocation(asked_mib, _mib(_FREE.search(said)), _mib(_ALLOWED.search(said)))
    )


def _mib(size: re.Match[str] | None) -> float | None:
    return None if size is None else float(size[1]) * _MIB[size[2]]


def _nan_code(said: str) -> str | None:
    return NAN_GRADIENT if _NAN_GRADIENT.fullmatch(said) else None


def _cuda_code(number: int | None, said: str) -> str | None:
    """Return the name of an error of CUDA or of its libraries, None where it is none."""
    library = _LIBRARY_CODE.search(said)
    if library:
        return library[0]
    words = _CUDA.match(said)
    if number is None and words is None:
        return None
    return _BY_NUMBER.get(number or 0) or (_BY_WORDS.get(words["said"]) if words else None) or ANY_CUDA_ERROR
