"""Share groups: create and delete."""
