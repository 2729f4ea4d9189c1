"""Placements of share instances: what they depend on, and their hosts.

Several are read, and several are given their hosts, by one statement each.
"""

from collections.abc import Collection, Mapping
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.columns import columns
from manila_lite.db.rows import PlacementRow
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, SHARE, SPEC, WORK, ZONE
from manila_lite.states.share_instance import InstanceStatus

_UNPLACED = (INSTANCE.c.status == InstanceStatus.CREATING, INSTANCE.c.host.is_(None))
_LIST = (
    sa.select(*columns(PlacementRow, INSTANCE, SHARE, WORK, SPEC, work_id=WORK.c.id))
    .select_from(
        WORK.join(INSTANCE, INSTANCE.c.id == WORK.c.resource_id)
        .join(SHARE)
        .outerjoin(SPEC, SPEC.c.share_type_id == INSTANCE.c.share_type_id)
    )
    .where(
        WORK.c.id.in_(sa.bindparam('work_ids', expanding=True)),
        WORK.c.kind.in_(sa.bindparam('kinds', expanding=True)),
    )
    .order_by(WORK.c.created_at, WORK.c.id)
)
_STATUS = sa.select(INSTANCE.c.status).where(
    INSTANCE.c.id == sa.bindparam('instance_id')
)


class Placement(typing.NamedTuple):
    """An instance to be placed, or to grow, and the extra specs of its type."""

    row: PlacementRow
    extra_specs: Mapping[str, str]


def list_placements(
    session: Session, work_ids: Collection[str], kinds: Collection[str]
) -> list[Placement]:
    """Return the instances of the work of these kinds, oldest work first."""
    found: dict[str, tuple[PlacementRow, dict[str, str]]] = {}
    for row in session.rows(_LIST, work_ids=sorted(work_ids), kinds=sorted(kinds)):
        specs = found.setdefault(row.work_id, (row, {}))[1]
        if row.spec_key is not None:
            specs[row.spec_key] = row.spec_value
    return [Placement(*one) for one in found.values()]


class Place(typing.NamedTuple):
    """The pool of an instance, and the name of its zone."""

    host: str
    zone: str | None


def assign_hosts(session: Session, places: Mapping[str, Place]) -> bool:
    """Give new instances, by id, their hosts; return whether all had none before."""
    values: dict[str, object] = {}
    for number, (id, place) in enumerate(sorted(places.items())):
        values |= {
            f'id_{number}': id,
            f'host_{number}': place.host,
            f'zone_{number}': place.zone,
        }
    return session.run(_assign_hosts(len(places)), **values, now=session.now) == len(
        places
    )


@functools.cache
def _assign_hosts(count: int) -> sa.Update:
    ids, hosts, zones = (
        [sa.bindparam(f'{name}_{number}', type_=type_) for number in range(count)]
        for name, type_ in (
            ('id', INSTANCE.c.id.type),
            ('host', INSTANCE.c.host.type),
            ('zone', ZONE.c.name.type),
        )
    )
    host, zone = (
        sa.case(
            *(
                (INSTANCE.c.id == id, value)
                for id, value in zip(ids, values, strict=True)
            )
        )
        for values in (hosts, zones)
    )
    return (
        sa.update(INSTANCE)
        .where(INSTANCE.c.id.in_(ids), *_UNPLACED)
        .values(
            host=host,
            availability_zone_id=sa.select(ZONE.c.id)
            .where(ZONE.c.name == zone)
            .correlate(INSTANCE)
            .scalar_subquery(),
            scheduled_at=sa.bindparam('now'),
            updated_at=sa.bindparam('now'),
        )
    )


def assign_host(
    session: Session, instance_id: str, host: str, zone: str | None
) -> None:
    """Give a new instance its host; only the first placement succeeds."""
    if not assign_hosts(session, {instance_id: Place(host, zone)}):
        raise exception.InvalidStatus(
            resource='share instance',
            id=instance_id,
            status=session.value(_STATUS, instance_id=instance_id),
            event='place',
            allowed=f'{InstanceStatus.CREATING}, without a host',
        )
