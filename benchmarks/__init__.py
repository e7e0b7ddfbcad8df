"""Measurements of acex and of other methods. Not part of the wheel; run from the repository: `python -m benchmarks`."""
