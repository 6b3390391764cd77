"""Say in one line what the tests need that pip cannot install, and how to get it."""

import shutil
import sys

from support.chromium import PROGRAMS

NEEDS = {
    "cc": "a C compiler (it builds the fake NVML): apt-get install gcc",
    "chromium": "Chromium (it opens the reports): apt-get install chromium-headless-shell, or chromium",
    "node": "Node.js (it runs the tests of the page's JavaScript): apt-get install nodejs",
    "npm": "npm (it fetches axe-core, which checks the reports, and the smaller plotly.js): apt-get install npm",
}

SAME = {"chromium": PROGRAMS}  # any of these will do

missing = [how for program, how in NEEDS.items() if not any(map(shutil.which, SAME.get(program, (program,))))]
if missing:
    sys.exit("make test needs " + "; and ".join(missing))
