"""All that is on a share server, changed at once when it has moved.

A few statements do it, however many shares there are; inserts go in one
batch. Statuses are not changed here.
"""

from collections.abc import Collection, Mapping, Sequence
import typing

import sqlalchemy as sa

from manila_lite.db.models import access
from manila_lite.db.models import share_servers
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.session import Session

INSTANCE = shares.ShareInstance.__table__
EXPORT = shares.ExportLocation.__table__
EXPORT_METADATA = shares.ExportLocationMetadata.__table__
RULE = access.InstanceAccessRule.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__
SNAPSHOT_EXPORT = snapshots.SnapshotExportLocation.__table__
SNAPSHOT_RULE = snapshots.SnapshotInstanceAccessRule.__table__
ALLOCATION = share_servers.NetworkAllocation.__table__
OF_SUBNET = share_servers.ShareServerSubnet.__table__

Locations = Sequence[Mapping[str, typing.Any]]

_AT_ONCE = 5000
"""How many ids are named in one statement."""


def _parts(ids: Collection[str]) -> typing.Iterator[list[str]]:
    wanted = sorted(ids)
    for begin in range(0, len(wanted), _AT_ONCE):
        yield wanted[begin : begin + _AT_ONCE]


def move_instances(
    session: Session,
    instance_ids: Collection[str],
    *,
    host: str,
    share_server_id: str,
    share_network_id: str | None,
    availability_zone_id: str | None,
) -> None:
    """Say that share instances are on another pool and server."""
    for part in _parts(instance_ids):
        session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.id.in_(part))
            .values(
                host=host,
                share_server_id=share_server_id,
                share_network_id=share_network_id,
                availability_zone_id=availability_zone_id,
                updated_at=session.now,
            )
        )


def set_snapshot_locations(
    session: Session, locations: Mapping[str, str]
) -> None:
    """Note where back ends have snapshots, by instance id."""
    session.run_many(
        sa.update(SNAPSHOT_INSTANCE)
        .where(SNAPSHOT_INSTANCE.c.id == sa.bindparam('instance_id'))
        .values(provider_location=sa.bindparam('new_location')),
        [
            {'instance_id': id, 'new_location': location}
            for id, location in sorted(locations.items())
        ],
    )


def replace_exports(session: Session, wanted: Mapping[str, Locations]) -> None:
    """Make these the export locations, by share instance id.

    One whose path stays keeps its id, and what users noted about it.
    """
    added = _replace(session, EXPORT, EXPORT.c.share_instance_id, wanted)
    session.run_many(
        sa.insert(EXPORT_METADATA),
        [
            {'export_location_id': id, 'key': key, 'value': value}
            for id, location in added
            for key, value in location.get('metadata', {}).items()
        ],
    )


def replace_snapshot_exports(
    session: Session, wanted: Mapping[str, Locations]
) -> None:
    """The same by snapshot instance id."""
    _replace(
        session,
        SNAPSHOT_EXPORT,
        SNAPSHOT_EXPORT.c.share_snapshot_instance_id,
        wanted,
    )


def _replace(
    session: Session,
    table: sa.Table,
    owner: sa.Column,
    wanted: Mapping[str, Locations],
) -> list[tuple[str, Mapping[str, typing.Any]]]:
    """What had to be inserted, with the ids it got."""
    known: set[tuple[str, str]] = set()
    gone: list[str] = []
    for part in _parts(wanted):
        for row in session.rows(
            sa.select(table.c.id, table.c.path, owner.label('owner_id')).where(
                owner.in_(part)
            )
        ):
            if any(
                location['path'] == row.path
                for location in wanted[row.owner_id]
            ):
                known.add((row.owner_id, row.path))
            else:
                gone.append(row.id)
    for part in _parts(gone):
        session.run(sa.delete(table).where(table.c.id.in_(part)))
    added, rows = [], []
    for owner_id, locations in sorted(wanted.items()):
        for location in locations:
            if (owner_id, location['path']) in known:
                continue
            id = session.new_id()
            added.append((id, location))
            rows.append(
                {
                    'id': id,
                    owner.name: owner_id,
                    'path': location['path'],
                    'is_admin_only': location['is_admin_only'],
                    'created_at': session.now,
                    'updated_at': session.now,
                }
            )
    session.run_many(sa.insert(table), rows)
    return added


def list_instances_with_rules(
    session: Session, instance_ids: Collection[str]
) -> list[str]:
    """Those of the share instances that have access rules."""
    return _having(session, RULE.c.share_instance_id, instance_ids)


def list_snapshots_with_rules(
    session: Session, instance_ids: Collection[str]
) -> list[str]:
    """The same of snapshot instances."""
    return _having(
        session, SNAPSHOT_RULE.c.share_snapshot_instance_id, instance_ids
    )


def _having(
    session: Session, column: sa.Column, ids: Collection[str]
) -> list[str]:
    return [
        row[0]
        for part in _parts(ids)
        for row in session.rows(
            sa.select(column)
            .where(column.in_(part))
            .distinct()
            .order_by(column)
        )
    ]


def mark_rules_stale(session: Session, instance_ids: Collection[str]) -> None:
    """Note that back ends may have other rules than those known."""
    _doubt(session, INSTANCE, instance_ids)


def mark_snapshot_rules_stale(
    session: Session, instance_ids: Collection[str]
) -> None:
    """The same of snapshot instances."""
    _doubt(session, SNAPSHOT_INSTANCE, instance_ids)


def _doubt(session: Session, table: sa.Table, ids: Collection[str]) -> None:
    for part in _parts(ids):
        session.run(
            sa.update(table)
            .where(table.c.id.in_(part))
            .values(access_stale=True)
        )


def transfer_addresses(
    session: Session, source_id: str, destination_id: str
) -> None:
    """Have one server be reached where the other was."""
    session.run(
        sa.update(ALLOCATION)
        .where(ALLOCATION.c.share_server_id == source_id)
        .values(share_server_id=destination_id, updated_at=session.now)
    )
    session.run(
        sa.delete(OF_SUBNET).where(
            OF_SUBNET.c.share_server_id == destination_id
        )
    )
    session.run(
        sa.update(OF_SUBNET)
        .where(OF_SUBNET.c.share_server_id == source_id)
        .values(share_server_id=destination_id)
    )


def get_rules_statuses(session: Session, server_id: str) -> set[str]:
    """What the rules of the shares on a server come to.

    The values of `access_rules_status`; one whose back end is still to
    be told counts as out_of_sync.
    """
    return {
        'out_of_sync' if row.access_stale else row.access_rules_status
        for row in session.rows(
            sa.select(INSTANCE.c.access_rules_status, INSTANCE.c.access_stale)
            .where(INSTANCE.c.share_server_id == server_id)
            .distinct()
        )
    }
