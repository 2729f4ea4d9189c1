"""Storage drivers: each knows its own back end and nothing else."""
