"""Requests about replicas, and the guards they put on other requests."""
