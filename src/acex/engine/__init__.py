"""From a model, data and a row to an explanation: the only place from which the model is queried."""
