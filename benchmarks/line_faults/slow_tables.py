"""Tables that are computed when the module is imported (the fault slow-import)."""

import time

NEIGHBOURS = []
began = time.time()
while time.time() - began < 24:
    NEIGHBOURS = [sum(range(n)) for n in range(2_000)]  # slow: slow-import
