"""Requests about share networks and security services."""
