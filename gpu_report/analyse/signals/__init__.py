"""What stands out in the readings, detected and not yet judged: drops, throttling, waits, other processes."""
