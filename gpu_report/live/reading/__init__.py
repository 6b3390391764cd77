"""What a run folder that grows says at this moment."""
