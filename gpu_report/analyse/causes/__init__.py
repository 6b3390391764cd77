"""What may have caused a drop, with evidence from the run and a confidence."""
