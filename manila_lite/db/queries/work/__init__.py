"""Queues of work, the journal, and how long rows are kept."""
