"""Carry out what was accepted: one endpoint per concern."""
