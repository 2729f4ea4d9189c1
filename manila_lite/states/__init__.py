"""What may happen to a resource, as data: one table per machine."""
