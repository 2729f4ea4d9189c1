"""A control plane for shared file systems."""
