"""What rows can hold, what points are, what they cost and which look real."""
