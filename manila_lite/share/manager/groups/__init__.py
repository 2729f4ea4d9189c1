"""Create and delete share groups and their snapshots."""
