"""Training and tuning of the belief of strategy "feasible" on simulated tasks."""
