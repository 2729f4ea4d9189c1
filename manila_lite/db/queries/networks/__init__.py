"""Share networks, subnets, addresses and security services."""
