"""Following a YOLO run from outside: its folder, results.csv and weights, and where its callbacks write."""
