"""Following the kernel log while recording, wherever this machine lets us read it."""
