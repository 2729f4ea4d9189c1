"""Accepted requests that are still owed, and what runs them."""
