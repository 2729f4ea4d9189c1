"""Services, their processes and their pools."""
