"""Windows of PyTorch's profiler in a training, and what asks for them."""
