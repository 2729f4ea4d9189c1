"""Accept requests about the migration of shares."""
