"""Share servers: set up, migrate, update their networks, delete."""
