"""Placement: which pool a share goes to, and why not to another."""
