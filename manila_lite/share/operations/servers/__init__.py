"""Requests about share servers and their migrations."""
