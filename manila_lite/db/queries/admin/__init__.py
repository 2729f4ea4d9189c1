"""Services, pools, quotas, messages and recovery."""
