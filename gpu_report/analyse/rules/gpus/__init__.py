"""Rules of a GPU: what it lacks, what holds it back, and which one does less than the others."""
