"""Back ends: each driver knows its own and nothing else."""
