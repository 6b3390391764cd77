"""What a recording knows of the job of several nodes that it may be part of."""
