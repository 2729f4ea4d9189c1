"""Share networks, subnets and security services."""
