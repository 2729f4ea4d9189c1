"""What drivers that keep files on this machine have in common."""
