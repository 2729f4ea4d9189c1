"""Shares and share instances."""
