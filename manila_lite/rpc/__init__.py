"""Messages between the services: contracts, and what carries them."""
