"""Share servers and their migrations."""
