"""What hides secrets: nothing that looks like one may reach the disk, from wherever it comes."""
