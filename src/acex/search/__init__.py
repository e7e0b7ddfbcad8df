"""Which point to ask next. Works with points only: no frames, no column names, no labels."""
