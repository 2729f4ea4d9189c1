"""The quota of a share whose migration changes its type, and its end.

The project and its user are charged once. Until the migration ends, the
limits of both types apply: the share counts for each of them, and so do its
snapshots, of which none is taken or deleted meanwhile. At its end all
instances that are left have the same type again.
"""

from collections.abc import Mapping

from manila_lite.db.moves import share_migrations as moves
from manila_lite.db.queries.shares import (
    instances as share_instances,
    migrations,
    shares,
)
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner


def charge_new_type(
    session: Session,
    instance: InstanceRow,
    share_type_id: str,
    *,
    limits: Mapping[str, int],
) -> None:
    """Charge a share to one more type; raises a QuotaError past a limit.

    Its snapshots have been moved before. `limits` are those of the options.
    """
    charges.charge(
        session,
        _owner(instance, share_type_id),
        _deltas(session, instance),
        limits=limits,
        size=instance.size,
    )


def roll_back(session: Session, share_id: str, error: str | None = None) -> None:
    """See `moves.roll_back`."""
    _return_type(session, share_id)
    moves.roll_back(session, share_id, error)


def keep_remains(session: Session, share_id: str, error: str) -> None:
    """See `moves.keep_remains`."""
    _return_type(session, share_id)
    moves.keep_remains(session, share_id, error)


def give_up(session: Session, share_id: str, error: str) -> None:
    """See `moves.give_up`; the share keeps its type."""
    _return_type(session, share_id)
    moves.give_up(session, share_id, error)


def cut_over(
    session: Session,
    source: InstanceRow,
    destination: InstanceRow,
    error: str | None = None,
) -> None:
    """See `moves.cut_over`; the share gets its new type, if there is one.

    What the type allows is that of a new share of the type.
    """
    migration = migrations.lock_open(session, source.share_id)
    if migration is not None and migration.new_share_type_id is not None:
        _credit(session, source, source.share_type_id)
        share_instances.set_share_type(session, source.id, migration.new_share_type_id)
        shares.update(
            session,
            source.share_id,
            share_types.capability_columns(
                share_types.find_by_id(session, migration.new_share_type_id)
            ),
        )
    moves.cut_over(session, source, destination, error)


def _return_type(session: Session, share_id: str) -> None:
    """Undo a change of the type before the migration ends."""
    # Locked: of two ends at the same time one gives the quota back.
    migration = migrations.lock_open(session, share_id)
    if migration is None or migration.new_share_type_id is None:
        return
    source = share_instances.find(session, migration.source_instance_id)
    if source is None:
        return
    _credit(session, source, migration.new_share_type_id)
    if migration.destination_instance_id is not None:
        share_instances.set_share_type(
            session, migration.destination_instance_id, source.share_type_id
        )


def _credit(session: Session, instance: InstanceRow, share_type_id: str | None) -> None:
    if share_type_id is not None:
        charges.credit(
            session, _owner(instance, share_type_id), _deltas(session, instance)
        )


def _owner(instance: InstanceRow, share_type_id: str) -> Owner:
    return Owner(instance.project_id, share_type_id=share_type_id, only_share_type=True)


def _deltas(session: Session, instance: InstanceRow) -> dict[str, int]:
    count, gigabytes = snapshots.sum_up(session, instance.share_id)
    deltas = {'shares': 1, 'gigabytes': instance.size}
    if count:
        deltas |= {'snapshots': count, 'snapshot_gigabytes': gigabytes}
    return deltas
