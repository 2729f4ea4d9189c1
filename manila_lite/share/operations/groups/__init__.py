"""Requests about share groups and their members."""
