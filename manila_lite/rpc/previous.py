"""What processes of the previous release understand.

Written by tools/record_contracts.py when a release is made, and then not changed
until the next one: a method or an argument that is not here is new in this
release. The contracts keep all that is here, because the previous release still
sends it.
"""

# ruff: noqa: E501
from collections.abc import Mapping

RELEASE = 1

KINDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        'access.sync_access': 'instance_id',
        'ensuring.ensure_shares': 'after service_id update_status',
        'managing.manage_share_instance': 'driver_options instance_id',
        'managing.manage_snapshot_instance': 'driver_options snapshot_instance_id',
        'managing.unmanage_share_instance': 'instance_id',
        'managing.unmanage_snapshot_instance': 'snapshot_instance_id',
        'network_updates.check_allocations': 'neutron_net_id neutron_subnet_id operation share_network_id zone_id',
        'network_updates.check_security_service': 'current_id new_id operation share_network_id',
        'network_updates.tell_subnet_metadata': 'metadata share_network_id share_server_id subnet_id',
        'network_updates.update_allocations': 'share_network_id share_server_id subnet_id',
        'network_updates.update_security_service': 'current_id new_id share_network_id share_server_id',
        'placement.check_server_destination': 'host needs',
        'placement.create_share_group': 'share_group_id zones',
        'placement.create_share_instance': 'attempted hints instance_id refusal snapshot_id source_host zones',
        'placement.create_share_replica': 'hints instance_id zones',
        'placement.extend_share_instance': 'growth instance_id new_size',
        'placement.manage_share_instance': 'driver_options instance_id',
        'placement.migrate_share_to_host': 'host share_id',
        'provisioning.await_share_from_snapshot': 'instance_id',
        'provisioning.create_share_from_group_snapshot': 'instance_id member_id',
        'provisioning.create_share_from_snapshot': 'instance_id placement snapshot_id',
        'provisioning.create_share_instance': 'instance_id placement',
        'provisioning.delete_share_instance': 'force instance_id',
        'provisioning.delete_share_instance_deferred': 'instance_id',
        'provisioning.extend_share_instance': 'growth host instance_id new_size',
        'provisioning.shrink_share_instance': 'instance_id new_size',
        'reconciliation.recover': 'asked_by before service_id',
        'reconciliation.rescue_access': 'asked_by share_instance_access_id',
        'reconciliation.rescue_share_group': 'asked_by share_group_id',
        'reconciliation.rescue_share_group_snapshot': 'asked_by share_group_snapshot_id',
        'reconciliation.rescue_share_instance': 'asked_by share_instance_id',
        'reconciliation.rescue_share_server': 'asked_by share_server_id',
        'reconciliation.rescue_share_server_task': 'asked_by share_server_task_id',
        'reconciliation.rescue_share_task': 'asked_by share_task_id',
        'reconciliation.rescue_share_transfer': 'asked_by share_transfer_id',
        'reconciliation.rescue_snapshot_access': 'asked_by snapshot_instance_id',
        'reconciliation.rescue_snapshot_instance': 'asked_by snapshot_instance_id',
        'replica_roles.reassert_active_replica': 'generation on_backend share_replica_id',
        'replica_updates.update_share_replica': 'share_replica_id',
        'replica_updates.update_share_replicas': 'after service_id',
        'replicated_snapshots.create_replicated_snapshot': 'share_instance_id snapshot_instance_id',
        'replicated_snapshots.delete_replicated_snapshot': 'force snapshot_instance_id',
        'replicated_snapshots.revert_to_replicated_snapshot': 'instance_id snapshot_id',
        'replication.create_share_replica': 'instance_id',
        'replication.delete_share_replica': 'force instance_id',
        'replication.promote_share_replica': 'instance_id quiesce_wait_time',
        'server_migration.cancel_server_migration': 'share_server_id',
        'server_migration.check_server_migration': 'dest_host new_share_network_id nondisruptive preserve_snapshots share_server_id writable',
        'server_migration.complete_server_migration': 'share_server_id',
        'server_migration.continue_server_migration': 'share_server_id',
        'server_migration.hear_server_migration': 'share_server_id',
        'server_migration.settle_server_migration': 'share_server_id',
        'server_migration.start_server_migration': 'share_server_id',
        'share_group_snapshots.create_share_group_snapshot': 'share_group_snapshot_id',
        'share_group_snapshots.delete_share_group_snapshot': 'share_group_snapshot_id',
        'share_groups.await_shares_of_group': 'share_group_id',
        'share_groups.create_share_group': 'share_group_id',
        'share_groups.delete_share_group': 'share_group_id',
        'share_metadata.update_share_from_metadata': 'keys share_instance_id',
        'share_migration.cancel_share_migration': 'share_id',
        'share_migration.complete_share_migration': 'share_id',
        'share_migration.continue_share_migration': 'share_id',
        'share_migration.hear_share_migration': 'share_id',
        'share_migration.settle_share_migration': 'share_id',
        'share_migration.start_share_migration': 'share_id',
        'share_servers.delete_share_server': 'security_service_ids share_server_id',
        'share_servers.manage_share_server': 'driver_options identifier share_server_id',
        'share_servers.unmanage_share_server': 'force share_server_id',
        'share_transfers.accept_transfer': 'share_instance_id transfer_id',
        'snapshot_access.sync_snapshot_access': 'snapshot_instance_id',
        'snapshots.create_snapshot_instance': 'share_instance_id snapshot_instance_id',
        'snapshots.delete_snapshot_instance': 'force snapshot_instance_id',
        'snapshots.revert_to_snapshot': 'instance_id snapshot_id',
    }.items()
}
"""The names of the arguments of all methods, by kind of work or call."""
