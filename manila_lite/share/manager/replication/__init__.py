"""Replicas: create, promote, resync, and record what drivers report."""
