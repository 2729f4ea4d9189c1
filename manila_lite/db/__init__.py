"""The one truth: models, statements, and the door to every status."""
