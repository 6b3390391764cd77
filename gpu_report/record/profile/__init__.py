"""Windows of PyTorch's profiler: when the training is asked for one, and packing the traces that it leaves."""
