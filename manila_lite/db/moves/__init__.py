"""Moves of several rows that belong together, for all layers above.

A module per noun; each function runs in the transaction of its caller.
"""
