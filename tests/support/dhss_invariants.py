"""Invariants of share servers while no work is pending."""

from collections.abc import Iterator, Mapping
import pathlib
import typing

import sqlalchemy as sa

from manila_lite.db.models import engine, share_groups, share_servers, shares
from manila_lite.db.session import Session
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.states.share_server import (
    SHARE_SERVER,
    SHARE_SERVER_TASK,
    ServerStatus,
)

JOURNAL = engine.Transition.__table__
SERVER = share_servers.ShareServer.__table__
ALLOCATION = share_servers.NetworkAllocation.__table__
OF_SUBNET = share_servers.ShareServerSubnet.__table__
DETAIL = share_servers.ShareServerBackendDetail.__table__
INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
GROUP = share_groups.ShareGroup.__table__

BackEnds = Mapping[str, tuple[pathlib.Path, typing.Any]]
"""By host: the state directory of a dummy back end, and its driver."""

_ON_BACKEND = frozenset(
    {
        ServerStatus.ACTIVE,
        ServerStatus.SERVER_MIGRATING,
        ServerStatus.SERVER_MIGRATING_TO,
        ServerStatus.NETWORK_CHANGE,
    }
)
"""Statuses in which a server certainly exists on its back end."""


def problems(session: Session, back_ends: BackEnds) -> list[str]:
    """Return a description of every violated invariant."""
    rows = session.rows(sa.select(SERVER))
    return [
        *at_rest(session, rows),
        *server_inventory(session, rows, back_ends),
        *addresses(session, rows, back_ends),
        *shares_on_servers(session, rows, back_ends),
        *groups_on_servers(session, rows, back_ends),
    ]


def at_rest(session: Session, rows: typing.Sequence[sa.Row]) -> Iterator[str]:
    """Nothing is in flight, and no rows are left of deleted servers."""
    for row in rows:
        if row.status in SHARE_SERVER.in_flight:
            yield f'server {row.id} is {row.status}, without work'
        if row.task_state in SHARE_SERVER_TASK.in_flight:
            yield f'server {row.id} is in {row.task_state}, without work'
        if row.build_key is not None:
            yield f'server {row.id} is {row.status} and has a build key'
    known = {row.id for row in rows}
    for table in (ALLOCATION, OF_SUBNET, DETAIL):
        for row in session.rows(sa.select(table.c.share_server_id)):
            if row.share_server_id not in known:
                yield f'{table.name} has a row of {row.share_server_id}'


def server_inventory(
    session: Session, rows: typing.Sequence[sa.Row], back_ends: BackEnds
) -> Iterator[str]:
    """Active servers are on their back end, and no others are."""
    actual = {
        id: host
        for host, (folder, _) in back_ends.items()
        for id in dummy.server_inventory(folder)
    }
    for row in rows:
        if row.status in _ON_BACKEND and actual.get(row.id) != row.host:
            yield f'server {row.id} should be on {row.host}'
    for id in actual.keys() - {row.id for row in rows}:
        yield f'server {id} is on a back end and has no row'


def addresses(
    session: Session, rows: typing.Sequence[sa.Row], back_ends: BackEnds
) -> Iterator[str]:
    """Servers have the addresses they need and use, and no others."""
    allocated: dict[str, list[sa.Row]] = {row.id: [] for row in rows}
    seen: set[tuple[str, str]] = set()
    for one in session.rows(sa.select(ALLOCATION)):
        allocated.setdefault(one.share_server_id, []).append(one)
        if (one.segment, one.ip_address) in seen:
            yield f'{one.ip_address} is allocated twice'
        seen.add((one.segment, one.ip_address))
    subnets: dict[str, int] = {}
    for one in session.rows(sa.select(OF_SUBNET)):
        subnets[one.share_server_id] = subnets.get(one.share_server_id, 0) + 1
    used = {
        id: set(found)
        for folder, _ in back_ends.values()
        for id, found in dummy.server_inventory(folder).items()
    }
    reset = {
        one.resource_id
        for one in session.rows(
            sa.select(JOURNAL.c.resource_id).where(
                JOURNAL.c.event == SHARE_SERVER.reset_event(ServerStatus.MANAGE_ERROR)
            )
        )
    }
    for row in rows:
        found = {one.ip_address for one in allocated[row.id]}
        if row.status == ServerStatus.ACTIVE and row.host in back_ends:
            if found != used.get(row.id):
                yield (
                    f'server {row.id} has {sorted(found)}, and uses {used.get(row.id)}'
                )
            driver = back_ends[row.host][1]
            wanted = (
                subnets.get(row.id, 0) * driver.get_network_allocations_number()
                + driver.get_admin_network_allocations_number()
            )
            if row.identifier == f'dummy-{row.id}' and (len(found) != wanted):
                yield f'server {row.id} has {found}, not {wanted} addresses'
        if row.status == ServerStatus.MANAGE_ERROR and found and row.id not in reset:
            yield f'server {row.id} is {row.status} and has {found}'


def shares_on_servers(
    session: Session, rows: typing.Sequence[sa.Row], back_ends: BackEnds
) -> Iterator[str]:
    """Available shares are on the server that their row names."""
    servers = {row.id: row for row in rows}
    actual = {
        id: server
        for folder, _ in back_ends.values()
        for id, server in dummy.servers_of_shares(folder).items()
    }
    for row in session.rows(sa.select(INSTANCE)):
        if row.share_server_id is not None and (row.share_server_id not in servers):
            yield f'{row.id} is on server {row.share_server_id}, which is gone'
        if row.status == 'available' and row.share_network_id is not None:
            if actual.get(row.id) != row.share_server_id:
                yield (
                    f'{row.id} is on server {actual.get(row.id)}, not '
                    f'{row.share_server_id}'
                )
            if servers[row.share_server_id].idle_since is not None:
                yield f'server {row.share_server_id} has shares and idle_since'


def groups_on_servers(
    session: Session, rows: typing.Sequence[sa.Row], back_ends: BackEnds
) -> Iterator[str]:
    """Available groups and their shares are on the server of the group."""
    servers = {row.id: row for row in rows}
    actual = {
        id: server
        for folder, _ in back_ends.values()
        for id, server in dummy.servers_of_groups(folder).items()
    }
    for row in session.rows(sa.select(GROUP)):
        if row.share_server_id is None:
            if row.status == 'available' and row.share_network_id is not None:
                yield f'share group {row.id} is on no server'
            continue
        if row.share_server_id not in servers:
            yield (
                f'share group {row.id} is on server {row.share_server_id}, '
                'which is gone'
            )
            continue
        if row.status == 'available' and (actual.get(row.id) != row.share_server_id):
            yield (
                f'share group {row.id} is on server {actual.get(row.id)}, '
                f'not {row.share_server_id}'
            )
        if servers[row.share_server_id].idle_since is not None:
            yield f'server {row.share_server_id} has groups and idle_since'
    for row in session.rows(
        sa.select(
            SHARE.c.id,
            INSTANCE.c.share_server_id,
            INSTANCE.c.share_network_id,
            GROUP.c.share_server_id.label('of_group'),
            GROUP.c.share_network_id.label('network_of_group'),
        )
        .join(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)
        .join(GROUP, GROUP.c.id == SHARE.c.share_group_id)
    ):
        if row.share_network_id != row.network_of_group or (
            row.share_server_id not in (None, row.of_group)
        ):
            yield f'share {row.id} is not on the network of its group'
