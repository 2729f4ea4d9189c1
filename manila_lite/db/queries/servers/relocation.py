"""Changes to everything on a share server when the server has moved.

The number of statements does not depend on the number of shares; inserts
are batched. Statuses are not changed here.
"""

from collections.abc import Collection, Mapping, Sequence
import typing

import sqlalchemy as sa

from manila_lite.db.session import Session
from manila_lite.db.tables import (
    ALLOCATION,
    EXPORT,
    EXPORT_METADATA,
    INSTANCE,
    MAPPING as RULE,
    OF_SUBNET,
    SNAPSHOT_EXPORT,
    SNAPSHOT_INSTANCE,
    SNAPSHOT_MAPPING as SNAPSHOT_RULE,
)
from manila_lite.states.access_rule import RulesStatus

Locations = Sequence[Mapping[str, typing.Any]]

_AT_ONCE = 5000
"""The most ids named in one statement."""


def _batches(ids: Collection[str]) -> typing.Iterator[list[str]]:
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
    """Move share instances to another pool and server."""
    for part in _batches(instance_ids):
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


def set_snapshot_locations(session: Session, locations: Mapping[str, str]) -> None:
    """Store the provider locations of snapshot instances, by id."""
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
    """Replace the export locations of share instances, by instance id.

    A location whose path exists already keeps its id and its metadata.
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


def replace_snapshot_exports(session: Session, wanted: Mapping[str, Locations]) -> None:
    """Replace export locations of snapshot instances, by instance id."""
    _replace(
        session, SNAPSHOT_EXPORT, SNAPSHOT_EXPORT.c.share_snapshot_instance_id, wanted
    )


def _replace(
    session: Session, table: sa.Table, owner: sa.Column, wanted: Mapping[str, Locations]
) -> list[tuple[str, Mapping[str, typing.Any]]]:
    """Replace locations; return the inserted ones with their new ids."""
    known: set[tuple[str, str]] = set()
    gone: list[str] = []
    for part in _batches(wanted):
        for row in session.rows(
            sa.select(table.c.id, table.c.path, owner.label('owner_id')).where(
                owner.in_(part)
            )
        ):
            if any(location['path'] == row.path for location in wanted[row.owner_id]):
                known.add((row.owner_id, row.path))
            else:
                gone.append(row.id)
    for part in _batches(gone):
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
    """Return the ids of those share instances that have access rules."""
    return _owners_in(session, RULE.c.share_instance_id, instance_ids)


def list_snapshots_with_rules(
    session: Session, instance_ids: Collection[str]
) -> list[str]:
    """Return the ids of those snapshot instances that have rules."""
    return _owners_in(session, SNAPSHOT_RULE.c.share_snapshot_instance_id, instance_ids)


def _owners_in(session: Session, column: sa.Column, ids: Collection[str]) -> list[str]:
    return [
        row[0]
        for part in _batches(ids)
        for row in session.rows(
            sa.select(column).where(column.in_(part)).distinct().order_by(column)
        )
    ]


def mark_snapshot_rules_stale(session: Session, instance_ids: Collection[str]) -> None:
    """Record that the rules of snapshot instances may differ."""
    for part in _batches(instance_ids):
        session.run(
            sa.update(SNAPSHOT_INSTANCE)
            .where(SNAPSHOT_INSTANCE.c.id.in_(part))
            .values(access_stale=True)
        )


def transfer_addresses(session: Session, source_id: str, destination_id: str) -> None:
    """Transfer the addresses and subnets of a server to another server."""
    session.run(
        sa.update(ALLOCATION)
        .where(ALLOCATION.c.share_server_id == source_id)
        .values(share_server_id=destination_id, updated_at=session.now)
    )
    session.run(
        sa.delete(OF_SUBNET).where(OF_SUBNET.c.share_server_id == destination_id)
    )
    session.run(
        sa.update(OF_SUBNET)
        .where(OF_SUBNET.c.share_server_id == source_id)
        .values(share_server_id=destination_id)
    )


def get_rules_statuses(session: Session, server_id: str) -> set[str]:
    """Return the set of `access_rules_status` of the shares on a server.

    An instance whose rules are stale counts as out_of_sync.
    """
    return {
        RulesStatus.OUT_OF_SYNC if row.access_stale else row.access_rules_status
        for row in session.rows(
            sa.select(INSTANCE.c.access_rules_status, INSTANCE.c.access_stale)
            .where(INSTANCE.c.share_server_id == server_id)
            .distinct()
        )
    }
