"""Shares on back ends: accepted, carried out, driven."""
