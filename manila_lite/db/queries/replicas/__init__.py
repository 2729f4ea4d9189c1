"""Share replicas."""
