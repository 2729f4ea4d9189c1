"""Network plug-ins: address allocation for share servers."""
