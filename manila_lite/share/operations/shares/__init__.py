"""Requests about shares."""
