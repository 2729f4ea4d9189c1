"""CIFS exports, served by Samba."""
