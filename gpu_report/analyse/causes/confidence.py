"""How sure a cause is, from 0 to 1: an order in which causes are ranked, not a measured probability."""

NAMED = 0.97  # the kernel log names the very process
CERTAIN = 0.95  # a state of the process, or the driver's own words: nothing is second to a fact
STRONG = 0.9  # two readings that hardly anything else explains
OWN_CORES = 0.88  # before workers that cannot keep up, for it says why; after others that took the cores
SUPPORTED = 0.85  # likely, and a second reading agrees
LIKELY = 0.8  # one reading that little else explains
PRESENT = 0.75  # it was there at the time; that it took the time was not measured
POSSIBLE = 0.7  # fits what was read, as other things may
HINTED = 0.6  # a message or a state that often has no effect
WEAK = 0.5  # what is left where nothing else was seen
FAINT = 0.4  # a corrected error: seldom felt at all
