"""Ids of rules and causes that other code needs to know, and what a finding may have waited for."""

UNEXPLAINED = "unexplained"  # an honest answer
GAPS = "short gaps"  # what is left of training where nothing explains it: nobody can act on it
LOADER, OTHER_NODE = "the data loader", "a rank on another node"  # what a finding waited for
WAITING_FOR_PEER = "waiting-for-peer"  # a rule and its cause
SLOW_RANK = "slow-rank"  # a rule: why the rank was late that others waited for
LAUNCH_BOUND = "launch-bound"  # a cause: nobody is to blame for a model whose steps are small
MEMORY_GROWS = frozenset({"memory-growth", "host-memory-growth"})  # what ends a program sooner or later
