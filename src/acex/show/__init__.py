"""Explanations for people: sentences, pictures, pages. Nothing here queries the model."""
