"""What stands out on the host: other processes, waits for disks, messages of the kernel."""
