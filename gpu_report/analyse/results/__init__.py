"""What follows from the findings: where the time went, a line for each epoch, the verdict and the ending."""
