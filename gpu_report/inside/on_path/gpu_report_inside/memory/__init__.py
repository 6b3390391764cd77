"""GPU memory that grows in a training: when somebody looks, what holds the tensors, and what that is called."""
