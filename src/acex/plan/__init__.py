"""The parts of an explanation as values: its plan, its target, its steps."""
