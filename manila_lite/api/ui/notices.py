"""What a page says after an action that the API has accepted."""

ACCEPTED = {
    'create': 'The share is being created.',
    'extend': 'The share is being extended.',
    'shrink': 'The share is being shrunk.',
    'allow': 'The access rule is being applied.',
    'deny': 'The access rule is being removed.',
    'snapshot': 'The snapshot is being taken.',
    'delete-snapshot': 'The snapshot is being deleted.',
    'revert': 'The share is being put back to its snapshot.',
    'delete': 'The share is being deleted.',
    'force-delete': 'The share is being deleted by force.',
    'reset-status': 'The status has been set.',
    'complete-migration': 'The migration is being completed.',
    'cancel-migration': 'The migration is being cancelled.',
    'replicate': 'The replica is being created.',
    'promote': 'The replica is being promoted.',
    'resync': 'The replica is being synchronized.',
    'delete-replica': 'The replica is being deleted.',
    'pass': 'A pass of recovery is requested.',
    'rescue': 'The rescue is requested.',
}
