"""What the parts of the dummy driver have in common, and its inventory.

The state is read from outside, whether or not the driver is running.
"""

from collections.abc import Callable
import contextlib
import hashlib
import pathlib
import threading
from typing import Any

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.share.drivers import base, disk_identity, records
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.contract.statistics import Disk, DiskRegistry
from manila_lite.share.drivers.dummy import faults, replication_domain
from manila_lite.share.drivers.dummy.fencing import FencingGate
from manila_lite.share.drivers.dummy.replication_domain import (
    READABLE,
    ReplicationDomain,
)
from manila_lite.share.drivers.dummy.state import Clients, DummyState

LockContext = contextlib.AbstractContextManager[object]


class DummyBackend:
    """The state of one back end, its lock, options and scheduled faults.

    Parts hold the lock while they read, change and write records.
    """

    def __init__(
        self,
        options: Configuration,
        replication_domain: str | None,
        methods: frozenset[str],
        sleep: Callable[[float], object],
    ):
        self.options = options
        self.state = DummyState(
            pathlib.Path(options.dummy_driver_state_path).absolute()
        )
        self.replication_type: Any = options.dummy_driver_replication_type or (
            READABLE if replication_domain else None
        )
        self.domain: ReplicationDomain | None = None
        self.lock: LockContext = threading.RLock()
        if self.replication_type:
            self.domain = _domain(options, replication_domain)
            # It also serialises changes by other back ends to replicas.
            self.lock = self.domain.lock
        self.fencing = FencingGate(self.state.path, options.dummy_driver_fencing)
        self.faults = _injector(options, self.state, methods, sleep, self.fencing)

    def claim_disk(self, registry: DiskRegistry) -> None:
        """Raise StorageUnavailable if the state belongs to another one."""
        state = self.state
        file = state.path / 'identity'
        disk_identity.claim(
            registry,
            Disk(
                None, disk_identity.find(file), None, disk_identity.location(state.path)
            ),
            file,
            lambda id, name: state.shares.find(id) is not None,
        )

    def get_share(self, share_id: str) -> records.Record:
        """Return the record of a share; raise if there is none."""
        record = self.state.shares.find(share_id)
        if record is None:
            raise exception.ShareResourceNotFound(share_id=share_id)
        return record

    def get_snapshot(self, snapshot_id: str) -> records.Record:
        """Return the record of a snapshot; raise if there is none."""
        record = self.state.snapshots.find(snapshot_id)
        if record is None:
            raise exception.SnapshotResourceNotFound(snapshot_id=snapshot_id)
        return record

    def pool_for(self, share: base.ShareForDriver) -> str:
        """Return the requested pool, or the first one."""
        pool = Host.parse(share['host'] or '').pool
        return pool or self.options.dummy_driver_pools[0]


def _domain(options: Configuration, name: str | None) -> ReplicationDomain:
    return ReplicationDomain(
        pathlib.Path(options.dummy_driver_replication_path).absolute()
        / hashlib.sha256((name or '').encode()).hexdigest()
    )


def _injector(
    options: Configuration,
    state: DummyState,
    methods: frozenset[str],
    sleep: Callable[[float], object],
    fencing: FencingGate,
) -> faults.FaultInjector:
    """Return an injector with the faults that the options schedule."""
    delays = options.dummy_driver_driver_methods_delays
    injector = faults.FaultInjector(
        methods,
        delay=options.dummy_driver_default_driver_method_delay,
        delays={method: float(delay) for method, delay in delays.items()},
        sleep=sleep,
        is_unreachable=state.is_unreachable,
        gate=fencing,
    )
    try:
        for method, times in options.dummy_driver_fail_methods.items():
            injector.fail_next(method, None if times == 'always' else int(times))
        for method in options.dummy_driver_hang_methods:
            injector.hang_next(method, times=None)
        for method in options.dummy_driver_answer_lost_methods:
            injector.lose_reply_next(method, times=None)
    except ValueError as error:
        raise exception.BadConfiguration(
            reason=f'back end "{options.config_group}": a '
            f'dummy_driver_*_methods option: {error}'
        ) from error
    return injector


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
