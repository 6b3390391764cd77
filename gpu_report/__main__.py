"""`gpu-report` and `python -m gpu_report`: the first line of ours that runs.

Importing the command line takes a moment, in which Ctrl-C would print a traceback. Until it is there, the signal ends
the process as it ends any program that does not catch it.
"""

import atexit
import gc
import signal

atexit.register(gc.freeze)  # a process that ends needs no last search for garbage: a tenth of a short run's report

_AS_PYTHON_DOES = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where a parent had it ignored
if _AS_PYTHON_DOES:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from gpu_report.few_collections import few_collections  # noqa: E402 - see above

with few_collections():
    from gpu_report.cli import main

if _AS_PYTHON_DOES:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if __name__ == "__main__":
    main()
