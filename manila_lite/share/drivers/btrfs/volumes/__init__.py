"""Subvolumes of shares and snapshots, and the pools that they are in."""
