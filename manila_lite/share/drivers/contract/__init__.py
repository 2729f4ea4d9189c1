"""The driver contract: interfaces, and the values that pass through them."""
