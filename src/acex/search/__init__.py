"""Points only: which one to ask next. No frames, no column names, no labels."""
