"""Requests about access rules and resource locks."""
