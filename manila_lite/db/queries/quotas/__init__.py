"""Quotas, their usage, and the counts that it is compared with."""
