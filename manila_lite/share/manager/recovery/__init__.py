"""Rescue of resources in flight: one module per kind of resource."""
