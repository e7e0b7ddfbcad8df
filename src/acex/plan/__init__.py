"""What an explanation is made of, as values: its plan, its target, its steps."""
