"""Many rows: executors, how a total budget is allocated, results and their summary."""
