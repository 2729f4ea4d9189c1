"""Build the objects of a process and connect them."""
