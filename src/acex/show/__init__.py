"""Presentation of explanations: sentences, plots and pages. Nothing here queries the model."""
