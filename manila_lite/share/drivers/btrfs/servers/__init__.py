"""Share servers: networks with daemons of their own."""
