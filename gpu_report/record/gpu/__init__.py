"""What NVML tells of the GPUs: their readings, their processes and their errors."""
