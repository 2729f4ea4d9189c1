"""The data service: it copies the content of shares."""
