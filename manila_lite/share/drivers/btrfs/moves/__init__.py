"""Copies in other pools: replicas, migration, clones."""
