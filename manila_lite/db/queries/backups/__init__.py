"""Queries about backups of shares."""
