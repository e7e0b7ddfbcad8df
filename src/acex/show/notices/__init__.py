"""Templates of notices, one file a language."""
