"""The local driver: shares are directories of this machine."""
