"""The state machines of all resources, as data: one table each."""
