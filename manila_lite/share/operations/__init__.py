"""Accept a request: move, check, charge, and leave the work."""
