"""Preconditions for the migration of a share server."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import typing

from manila_lite import exception
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.rows import (
    MigratingSnapshotRow,
    NetworkSubnetRow,
    ServerShareRow,
    ServiceRow,
)
from manila_lite.host import Host
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_server import ServerStatus
from manila_lite.states.snapshot_instance import SnapshotStatus

_MAX_NAMED = 5
"""How many of the offending shares an error names."""


@dataclasses.dataclass(frozen=True)
class MigrationOptions:
    """The destination of a migration and what it has to preserve.

    `dest_host` is host@backend, or host@backend#pool (decision D6).
    """

    dest_host: str
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool
    new_share_network_id: str | None = None


class MigrationPlan(typing.NamedTuple):
    """The network of the migrated server, and what its shares need.

    `needs` are the sums of `sum_shares`. `network_reasons` say
    why the network does not allow the requested migration; `serves_zone` is
    false if it has no subnet for the zone of the destination.
    """

    share_network_id: str | None
    needs: list[Mapping[str, object]]
    network_reasons: list[str]
    serves_zone: bool


def refuse_destination(server: ServerShareRow, options: MigrationOptions) -> None:
    """Raise if the destination is malformed or is the current back end."""
    destination = Host.parse(options.dest_host)
    if not (destination.machine and destination.backend):
        raise exception.InvalidInput(
            reason='host must be host@backend or host@backend#pool'
        )
    if destination.service_host == server.host:
        raise exception.ShareServerNotMigratable(
            reason=f'share server {server.id} is already on {destination.service_host}'
        )


def refuse_status(server: ServerShareRow) -> None:
    """Raise if the server is not active."""
    if server.status != ServerStatus.ACTIVE:
        raise exception.ShareServerNotMigratable(
            reason=f'share server {server.id} is {server.status}, not '
            f'{ServerStatus.ACTIVE}'
        )


def refuse_shares(
    rows: Sequence[ServerShareRow],
    snapshots: Sequence[MigratingSnapshotRow],
    options: MigrationOptions,
) -> None:
    """Raise if anything on the server cannot be migrated with it."""
    server = rows[0]
    share_rows = [row for row in rows if row.instance_id]
    if not share_rows:
        _refuse(server, 'has no shares, so there is nothing to migrate')
    _refuse_listed(
        server,
        (row for row in share_rows if row.instance_status != InstanceStatus.AVAILABLE),
        f'has shares that are not {InstanceStatus.AVAILABLE}',
    )
    _refuse_listed(
        server,
        (row for row in share_rows if row.share_group_id),
        'has shares in share groups',
    )
    if server.has_share_groups:
        _refuse(server, 'has share groups, which cannot be migrated')
    refuse_soft_deleted(rows)
    refuse_share_replicas(rows)
    _refuse_listed(
        server,
        (row for row in share_rows if row.access_rules_status != RulesStatus.ACTIVE),
        'has shares whose access rules are changing or in error',
    )
    _refuse_listed(
        server,
        (row for row in snapshots if row.status != SnapshotStatus.AVAILABLE),
        f'has shares with snapshots that are not {SnapshotStatus.AVAILABLE}',
    )
    if not options.preserve_snapshots:
        _refuse_listed(
            server,
            snapshots,
            'has snapshots, which would be lost; preserve, '
            'unmanage or delete the snapshots of shares',
        )


def refuse_soft_deleted(rows: Sequence[ServerShareRow]) -> None:
    """Raise ShareServerNotMigratable if a share is in the recycle bin.

    It would be deleted in the middle of the migration.
    """
    _refuse_listed(
        rows[0],
        (row for row in rows if row.is_soft_deleted),
        'has shares in the recycle bin',
    )


def refuse_share_replicas(rows: Sequence[ServerShareRow]) -> None:
    """Raise ShareServerNotMigratable if replicas cannot be migrated."""
    server = rows[0]
    if not server.share_replicas_migration_support:
        _refuse_listed(
            server, (row for row in rows if row.has_copies), 'has shares with replicas'
        )


def _refuse_listed(
    server: ServerShareRow,
    offending: Iterable[ServerShareRow | MigratingSnapshotRow],
    why: str,
) -> None:
    share_ids = sorted({row.share_id for row in offending})
    if share_ids:
        more = f' and {len(share_ids) - _MAX_NAMED} more' * (
            len(share_ids) > _MAX_NAMED
        )
        _refuse(server, f'{why}: {", ".join(share_ids[:_MAX_NAMED])}{more}')


def _refuse(server: ServerShareRow, why: str) -> typing.NoReturn:
    raise exception.ShareServerNotMigratable(reason=f'share server {server.id} {why}')


def plan_migration(
    rows: Sequence[ServerShareRow],
    service: ServiceRow,
    networks: Sequence[NetworkSubnetRow],
    options: MigrationOptions,
) -> MigrationPlan:
    """Return the plan of a migration; raises without a usable network."""
    server = rows[0]
    network_id = options.new_share_network_id or server.share_network_id
    _refuse_network(server, networks, network_id)
    subnets = [row for row in networks if row.id == network_id]
    usable = [row for row in subnets if row.zone == service.zone] or [
        row for row in subnets if row.zone is None and row.subnet_id is not None
    ]
    reasons = []
    if not usable:
        reasons.append(
            f'share network {network_id} has no subnet for '
            f'availability zone {service.zone}'
        )
    elif options.nondisruptive and _network_identities(usable) != _network_identities(
        row for row in networks if row.is_used
    ):
        reasons.append(
            'a migration cannot be nondisruptive if the '
            'network of the share server changes'
        )
    return MigrationPlan(
        network_id,
        server_migrations.sum_shares(row for row in rows if row.instance_id),
        reasons,
        bool(usable),
    )


def refuse_unknown_network(
    server: ServerShareRow,
    networks: Sequence[NetworkSubnetRow],
    options: MigrationOptions,
) -> None:
    """Raise InvalidInput if the network of the request does not exist."""
    network_id = options.new_share_network_id or server.share_network_id
    if network_id not in {row.id for row in networks}:
        raise exception.InvalidInput(
            reason=f'share network {network_id} could not be found'
        )


def _refuse_network(
    server: ServerShareRow, networks: Sequence[NetworkSubnetRow], network_id: str | None
) -> None:
    """Raise InvalidInput unless the server can be on the network."""
    by_id: dict[str | None, NetworkSubnetRow] = {row.id: row for row in networks}
    old, new = by_id.get(server.share_network_id), by_id[network_id]
    for row in filter(None, (old, new)):
        if row.status != NetworkStatus.ACTIVE:
            raise exception.InvalidInput(
                reason=f'share network {row.id} is {row.status}, not '
                f'{NetworkStatus.ACTIVE}'
            )
    if old is not None and new.project_id != old.project_id:
        raise exception.InvalidInput(
            reason=f'share network {network_id} belongs to another project '
            'than the shares'
        )


def _network_identities(subnets: Iterable[NetworkSubnetRow]) -> set[typing.Any]:
    """Return Neutron ids of subnets, or their own ids without Neutron."""
    return {
        (row.neutron_net_id, row.neutron_subnet_id)
        if row.neutron_net_id
        else row.subnet_id
        for row in subnets
    }
