"""The processes that serve clients, and those that keep them running."""
