"""Access rules of shares and snapshots, and resource locks."""
