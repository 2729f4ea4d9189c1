"""Migrate shares from this back end to others."""
