"""What clients mount: NFS and CIFS exports, and access to them."""
