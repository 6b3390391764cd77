"""How events are decoded: by msgspec where it is installed, else by `json` of the standard library.

Both come to the same events: what msgspec refuses (a number written as text, NaN) `json` takes, and makes it fit.
"""

from typing import Final

from gpu_report.load.trace.decode import Decode, decode_by_json

try:
    from gpu_report.load.trace.decode_by_msgspec import decode_by_msgspec
except ImportError:  # the extra [profile] is not installed
    _found: Decode = decode_by_json
else:
    _found = decode_by_msgspec

FASTEST_DECODE: Final[Decode] = _found
