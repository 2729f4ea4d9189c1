"""What has to be so before a share server can be moved."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import typing

from manila_lite import exception
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_server import ServerStatus
from manila_lite.states.snapshot_instance import SnapshotStatus

_NAMED = 5
"""How many of those that are not fit an error names."""


@dataclasses.dataclass(frozen=True)
class MigrationOptions:
    """Where a server is to go, and what may not be lost on the way.

    `dest_host` is host@backend, or host@backend#pool (decision D6).
    """

    dest_host: str
    writable: bool
    nondisruptive: bool
    preserve_snapshots: bool
    new_share_network_id: str | None = None


class MigrationPlan(typing.NamedTuple):
    """The network that the server would be on, and what its shares need.

    `needs` are those of `migrations.totals`. `network_reasons` say why
    the network does not allow what was asked for.
    """

    share_network_id: str | None
    needs: list[Mapping[str, object]]
    network_reasons: list[str]


def refuse_destination(server: typing.Any, wish: MigrationOptions) -> None:
    """Raise when the server is there already, or the place is none."""
    service_host, _, _ = wish.dest_host.partition('#')
    host, _, backend = service_host.partition('@')
    if not (host and backend):
        raise exception.InvalidInput(
            reason='host must be host@backend or host@backend#pool'
        )
    if service_host == server.host:
        raise exception.ShareServerNotMigratable(
            reason=f'share server {server.id} is on {service_host} already'
        )


def refuse_status(server: typing.Any) -> None:
    """Raise when the server is not active."""
    if server.status != ServerStatus.ACTIVE:
        raise exception.ShareServerNotMigratable(
            reason=f'share server {server.id} is {server.status}, not '
            f'{ServerStatus.ACTIVE}'
        )


def refuse_shares(
    rows: Sequence[typing.Any],
    snapshots: Sequence[typing.Any],
    wish: MigrationOptions,
) -> None:
    """Raise when anything on the server cannot be moved with it."""
    server = rows[0]
    on_it = [row for row in rows if row.instance_id]
    if not on_it:
        _refuse(server, 'has no shares, so there is nothing to migrate')
    _refuse_those(
        server,
        (
            row
            for row in on_it
            if row.instance_status != InstanceStatus.AVAILABLE
        ),
        f'has shares that are not {InstanceStatus.AVAILABLE}',
    )
    _refuse_those(
        server,
        (row for row in on_it if row.share_group_id),
        'has shares of share groups',
    )
    refuse_share_replicas(rows)
    _refuse_those(
        server,
        (
            row
            for row in on_it
            if row.access_rules_status != RulesStatus.ACTIVE
        ),
        'has shares whose access rules are changing or in error',
    )
    _refuse_those(
        server,
        (row for row in snapshots if row.status != SnapshotStatus.AVAILABLE),
        f'has shares with snapshots that are not {SnapshotStatus.AVAILABLE}',
    )
    if not wish.preserve_snapshots:
        _refuse_those(
            server,
            snapshots,
            'has snapshots, which would be lost; preserve, '
            'unmanage or delete those of shares',
        )


def refuse_share_replicas(rows: Sequence[typing.Any]) -> None:
    """Raise ShareServerNotMigratable where replicas could not go along."""
    server = rows[0]
    if not server.share_replicas_migration_support:
        _refuse_those(
            server,
            (row for row in rows if row.has_copies),
            'has shares with replicas',
        )


def _refuse_those(
    server: typing.Any, unfit: Iterable[typing.Any], why: str
) -> None:
    named = sorted({row.share_id for row in unfit})
    if named:
        more = f' and {len(named) - _NAMED} more' * (len(named) > _NAMED)
        _refuse(server, f'{why}: {", ".join(named[:_NAMED])}{more}')


def _refuse(server: typing.Any, why: str) -> typing.NoReturn:
    raise exception.ShareServerNotMigratable(
        reason=f'share server {server.id} {why}'
    )


def plan_migration(
    rows: Sequence[typing.Any],
    service: typing.Any,
    networks: Sequence[typing.Any],
    wish: MigrationOptions,
) -> MigrationPlan:
    """What a migration is about; raises when it has no fit network."""
    server = rows[0]
    network_id = wish.new_share_network_id or server.share_network_id
    _refuse_network(server, networks, network_id)
    subnets = [row for row in networks if row.id == network_id]
    fit = [row for row in subnets if row.zone == service.zone] or [
        row
        for row in subnets
        if row.zone is None and row.subnet_id is not None
    ]
    reasons = []
    if not fit:
        reasons.append(
            f'share network {network_id} has no subnet for '
            f'availability zone {service.zone}'
        )
    elif wish.nondisruptive and _places(fit) != _places(
        row for row in networks if row.is_used
    ):
        reasons.append(
            'a migration cannot be nondisruptive where the '
            'network of the share server changes'
        )
    return MigrationPlan(
        network_id,
        server_migrations.sum_by_type_and_protocol(
            row for row in rows if row.instance_id
        ),
        reasons,
    )


def _refuse_network(
    server: typing.Any, networks: Sequence[typing.Any], network_id: str
) -> None:
    """Raise InvalidInput unless the network can be the server's."""
    known = {row.id: row for row in networks}
    old, new = known.get(server.share_network_id), known.get(network_id)
    if new is None:
        raise exception.InvalidInput(
            reason=f'share network {network_id} could not be found'
        )
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


def _places(subnets: Iterable[typing.Any]) -> set[typing.Any]:
    """Where subnets are: of an external network, or themselves."""
    return {
        (row.neutron_net_id, row.neutron_subnet_id)
        if row.neutron_net_id
        else row.subnet_id
        for row in subnets
    }
