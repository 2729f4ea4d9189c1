"""Statements, one module per resource; each takes a session first."""
