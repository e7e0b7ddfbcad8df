"""The values that rows can hold; points, their cost and their plausibility; what a row may become."""
