"""NFS exports, served by NFS-Ganesha."""
