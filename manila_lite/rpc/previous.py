"""What processes of the previous release understand.

Written when a release is made, and then not changed until the next one:
a method or an argument that is not here is new in this release. The
contracts keep all that is here, because the previous release still sends it.
"""

from collections.abc import Mapping

RELEASE = 1

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    'access.sync_access': ('instance_id',),
    'ensuring.ensure_shares': ('service_id', 'update_status', 'after'),
    'managing.manage_share_instance': ('instance_id', 'driver_options'),
    'managing.manage_snapshot_instance': ('snapshot_instance_id', 'driver_options'),
    'managing.unmanage_share_instance': ('instance_id',),
    'managing.unmanage_snapshot_instance': ('snapshot_instance_id',),
    'network_updates.check_allocations': (
        'share_network_id',
        'operation',
        'zone_id',
        'neutron_net_id',
        'neutron_subnet_id',
    ),
    'network_updates.check_security_service': (
        'share_network_id',
        'operation',
        'new_id',
        'current_id',
    ),
    'network_updates.tell_subnet_metadata': (
        'share_server_id',
        'share_network_id',
        'subnet_id',
        'metadata',
    ),
    'network_updates.update_allocations': (
        'share_server_id',
        'share_network_id',
        'subnet_id',
    ),
    'network_updates.update_security_service': (
        'share_server_id',
        'share_network_id',
        'new_id',
        'current_id',
    ),
    'placement.check_server_destination': ('host', 'needs'),
    'placement.create_share_group': ('share_group_id', 'zones'),
    'placement.create_share_instance': (
        'instance_id',
        'zones',
        'hints',
        'snapshot_id',
        'source_host',
        'attempted',
        'refusal',
    ),
    'placement.create_share_replica': ('instance_id', 'zones', 'hints'),
    'placement.extend_share_instance': ('instance_id', 'new_size', 'growth'),
    'placement.manage_share_instance': ('instance_id', 'driver_options'),
    'placement.migrate_share_to_host': ('share_id', 'host'),
    'provisioning.await_share_from_snapshot': ('instance_id',),
    'provisioning.create_share_from_group_snapshot': ('instance_id', 'member_id'),
    'provisioning.create_share_from_snapshot': (
        'instance_id',
        'snapshot_id',
        'placement',
    ),
    'provisioning.create_share_instance': ('instance_id', 'placement'),
    'provisioning.delete_share_instance': ('instance_id', 'force'),
    'provisioning.delete_share_instance_deferred': ('instance_id',),
    'provisioning.extend_share_instance': ('instance_id', 'new_size', 'growth', 'host'),
    'provisioning.shrink_share_instance': ('instance_id', 'new_size'),
    'reconciliation.recover': ('service_id', 'before', 'asked_by'),
    'reconciliation.rescue_access': ('share_instance_access_id', 'asked_by'),
    'reconciliation.rescue_share_group': ('share_group_id', 'asked_by'),
    'reconciliation.rescue_share_group_snapshot': (
        'share_group_snapshot_id',
        'asked_by',
    ),
    'reconciliation.rescue_share_instance': ('share_instance_id', 'asked_by'),
    'reconciliation.rescue_share_server': ('share_server_id', 'asked_by'),
    'reconciliation.rescue_share_server_task': ('share_server_task_id', 'asked_by'),
    'reconciliation.rescue_share_task': ('share_task_id', 'asked_by'),
    'reconciliation.rescue_share_transfer': ('share_transfer_id', 'asked_by'),
    'reconciliation.rescue_snapshot_access': ('snapshot_instance_id', 'asked_by'),
    'reconciliation.rescue_snapshot_instance': ('snapshot_instance_id', 'asked_by'),
    'replica_roles.reassert_active_replica': (
        'share_replica_id',
        'generation',
        'on_backend',
    ),
    'replica_updates.update_share_replica': ('share_replica_id',),
    'replica_updates.update_share_replicas': ('service_id', 'after'),
    'replicated_snapshots.create_replicated_snapshot': (
        'snapshot_instance_id',
        'share_instance_id',
    ),
    'replicated_snapshots.delete_replicated_snapshot': (
        'snapshot_instance_id',
        'force',
    ),
    'replicated_snapshots.revert_to_replicated_snapshot': (
        'instance_id',
        'snapshot_id',
    ),
    'replication.create_share_replica': ('instance_id',),
    'replication.delete_share_replica': ('instance_id', 'force'),
    'replication.promote_share_replica': ('instance_id', 'quiesce_wait_time'),
    'server_migration.cancel_server_migration': ('share_server_id',),
    'server_migration.check_server_migration': (
        'share_server_id',
        'dest_host',
        'writable',
        'nondisruptive',
        'preserve_snapshots',
        'new_share_network_id',
    ),
    'server_migration.complete_server_migration': ('share_server_id',),
    'server_migration.continue_server_migration': ('share_server_id',),
    'server_migration.hear_server_migration': ('share_server_id',),
    'server_migration.settle_server_migration': ('share_server_id',),
    'server_migration.start_server_migration': ('share_server_id',),
    'share_group_snapshots.create_share_group_snapshot': ('share_group_snapshot_id',),
    'share_group_snapshots.delete_share_group_snapshot': ('share_group_snapshot_id',),
    'share_groups.await_shares_of_group': ('share_group_id',),
    'share_groups.create_share_group': ('share_group_id',),
    'share_groups.delete_share_group': ('share_group_id',),
    'share_metadata.update_share_from_metadata': ('share_instance_id', 'keys'),
    'share_migration.cancel_share_migration': ('share_id',),
    'share_migration.complete_share_migration': ('share_id',),
    'share_migration.continue_share_migration': ('share_id',),
    'share_migration.hear_share_migration': ('share_id',),
    'share_migration.settle_share_migration': ('share_id',),
    'share_migration.start_share_migration': ('share_id',),
    'share_servers.delete_share_server': ('share_server_id', 'security_service_ids'),
    'share_servers.manage_share_server': (
        'share_server_id',
        'identifier',
        'driver_options',
    ),
    'share_servers.unmanage_share_server': ('share_server_id', 'force'),
    'share_transfers.accept_transfer': ('share_instance_id', 'transfer_id'),
    'snapshot_access.sync_snapshot_access': ('snapshot_instance_id',),
    'snapshots.create_snapshot_instance': ('snapshot_instance_id', 'share_instance_id'),
    'snapshots.delete_snapshot_instance': ('snapshot_instance_id', 'force'),
    'snapshots.revert_to_snapshot': ('instance_id', 'snapshot_id'),
}

KINDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(names) for kind, names in _ARGUMENTS.items()
}
"""The names of the arguments of all methods, by kind of work or call."""
