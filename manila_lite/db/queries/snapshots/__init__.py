"""Snapshots, snapshot instances and their export locations."""
