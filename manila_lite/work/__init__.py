"""Accepted requests that are not done yet, and the runner that does them."""
