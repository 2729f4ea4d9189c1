"""Shares, share instances and export locations."""
