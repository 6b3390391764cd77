"""What the host does meanwhile: CPU, memory, pressure, disks, and the trainer's processes, from /proc."""
