"""Snapshots and snapshot instances."""
