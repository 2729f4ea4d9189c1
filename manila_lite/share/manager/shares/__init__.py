"""Carry out work on shares."""
