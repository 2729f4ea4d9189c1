"""Addresses of share servers, and the networks they are in."""
