"""What a YOLO run left behind, on the run's clock: results.csv, args.yaml, and what its callbacks wrote."""
