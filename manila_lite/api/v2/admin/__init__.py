"""Services, pools, quotas, limits, messages, zones, recovery."""
