"""Access rules: apply them on back ends, and record the outcome."""
