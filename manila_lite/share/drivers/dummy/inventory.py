"""What is on a dummy back end.

The state is read from outside, whether or not the driver is running.
"""

import pathlib

from manila_lite.share.drivers import records
from manila_lite.share.drivers.dummy import replication_domain
from manila_lite.share.drivers.dummy.state import Clients, DummyState


def inventory(state_path: str | pathlib.Path) -> dict[str, int]:
    """Return the sizes of a back end's shares, by share instance id."""
    return _sizes(DummyState(state_path).shares)


def snapshot_inventory(state_path: str | pathlib.Path) -> dict[str, int]:
    """Return the sizes of snapshots, by snapshot instance id."""
    return _sizes(DummyState(state_path).snapshots)


def group_inventory(state_path: str | pathlib.Path) -> set[str]:
    """Return the ids of the share groups that the back end knows of."""
    return {name for name, _ in DummyState(state_path).groups.records()}


def backup_inventory(state_path: str | pathlib.Path) -> dict[str, int]:
    """Return the progress of backups in percent, by their ids."""
    return {
        name: 100 * record['done'] // record['steps']
        for name, record in DummyState(state_path).backups.records()
    }


def replica_inventory(
    state_path: str | pathlib.Path,
) -> dict[str, replication_domain.DummyReplica]:
    """Return role, version and sync state of replicas by their ids."""
    return replication_domain.list_replicas(DummyState(state_path))


def access_inventory(state_path: str | pathlib.Path) -> Clients:
    """Return the clients that have access, by share instance id.

    A client is its type, its name as given, and its level. Shares without
    clients are left out, as are replicas that deny all clients. Read-only
    replicas have no other level.
    """
    state = DummyState(state_path)
    return replication_domain.effective_clients(state, state.access.inventory())


def snapshot_access_inventory(state_path: str | pathlib.Path) -> Clients:
    """Return the clients that have access, by snapshot instance id."""
    state = DummyState(state_path)
    return replication_domain.effective_snapshot_clients(
        state, state.snapshot_access.inventory()
    )


def server_inventory(state_path: str | pathlib.Path) -> dict[str, list[str]]:
    """Return the addresses of its share servers, by share server id."""
    return {
        name: [*record['addresses'], *record['admin_addresses']]
        for name, record in DummyState(state_path).servers.records()
    }


def servers_of_shares(state_path: str | pathlib.Path) -> dict[str, str]:
    """Return the share server of each share, by share instance id."""
    return {
        name: record['server']
        for name, record in DummyState(state_path).shares.records()
        if record.get('server')
    }


def servers_of_groups(state_path: str | pathlib.Path) -> dict[str, str]:
    """Return the share server of each share group that is on one."""
    return {
        name: record['server']
        for name, record in DummyState(state_path).groups.records()
        if record.get('server')
    }


def _sizes(folder: records.RecordFolder) -> dict[str, int]:
    return {name: record['size'] for name, record in folder.records()}
