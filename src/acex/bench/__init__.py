"""Measuring acex and its rivals on the same ground."""
