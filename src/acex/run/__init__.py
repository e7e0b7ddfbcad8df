"""From a model, data and a row to an explanation."""
