"""Nothing but `sitecustomize` and `gpu_report_inside` may lie here: every name shadows the user's own of that name."""
