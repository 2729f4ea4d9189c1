"""Shares on btrfs that clients mount by NFS."""
