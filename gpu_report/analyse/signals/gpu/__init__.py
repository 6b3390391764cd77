"""What stands out in the readings of the GPUs: falls of utilisation, clocks, memory, the PCIe link."""
