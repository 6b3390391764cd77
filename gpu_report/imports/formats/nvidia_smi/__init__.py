"""What nvidia-smi writes: its query as CSV, and the tables of its dmon and pmon."""
