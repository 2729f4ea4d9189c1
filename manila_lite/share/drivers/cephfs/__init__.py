"""CephFS: a subvolume for each share, and clients that mount it natively."""
