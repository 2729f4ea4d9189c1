"""The quota of shares: charges, resizing, transfers, migrations and removal.

A share is charged once, and each of its replicas in addition. Code that
changes the size or removes a replica locks all replicas first, so that
what it reads of them stays valid until the change is written.

While a migration changes the type of a share, the limits of both types apply: the
share counts for each of them, and so do its snapshots, of which none is taken or
deleted meanwhile. The project and its user are charged once. At its end all
instances that are left have the same type again.
"""

import collections
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
import datetime
import functools
import typing

from manila_lite import exception
from manila_lite.db.moves import share_migrations as moves, shares as share_moves
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.shares import (
    encryption_keys,
    instances as share_instances,
    migrations,
    shares,
    transfers,
)
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.rows import ChargedRow, ChargedShareRow, InstanceRow, ReplicaRow
from manila_lite.db.session import Session
from manila_lite.quota import charges, snapshots as snapshot_quota
from manila_lite.quota.charges import Owner
from manila_lite.quota.encryption_keys import DELTAS, release_key
from manila_lite.quota.recount import to_reservation
from manila_lite.quota.snapshots import deltas_of as snapshot_deltas
from manila_lite.states.snapshot_instance import HIDDEN_FROM_TENANTS, SnapshotStatus

Reservations = Collection[list[typing.Any]]
"""The `charges` of a job."""


def owner_of(instance: ChargedRow) -> Owner:
    """Return the owner that an instance is charged to."""
    return Owner(instance.project_id, instance.user_id, instance.share_type_id)


def deltas_of(instance: ChargedShareRow) -> dict[str, int]:
    """Return the usage of a share with one instance, by resource.

    A share that is still to be managed, or could not be, has no size and
    is not charged.
    """
    if not instance.size:
        return {}
    return {
        'shares': 1,
        **size_deltas(instance, instance.size),
        **({'share_replicas': 1} if instance.replication_type else {}),
    }


def size_deltas(
    instance: ChargedShareRow, size: int, replicas: int = 1
) -> dict[str, int]:
    """Return the usage of `size` GiB of a share, by resource.

    `replicas` is their number, for shares that can have replicas.
    """
    deltas = {'gigabytes': size}
    if instance.replication_type:
        deltas['replica_gigabytes'] = size * replicas
    return deltas


def replica_deltas(instance: ChargedShareRow) -> dict[str, int]:
    """Return the additional usage of one replica, by resource."""
    return {'share_replicas': 1, 'replica_gigabytes': instance.size}


def charge(
    session: Session,
    owner: Owner,
    size: int,
    *,
    limits: Mapping[str, int],
    reserve: bool = False,
    shares: int = 0,
    gigabytes: int = 0,
    replicas: int = 0,
) -> None:
    """Charge for a new share, or for the growth of one; see `charges.charge`.

    `size` is what the share will have, `gigabytes` what is added to it and
    to each of its replicas, whose number is `replicas`.
    """
    deltas = {
        'shares': shares,
        'gigabytes': gigabytes,
        'share_replicas': shares * replicas,
        'replica_gigabytes': gigabytes * replicas,
    }
    charges.charge(
        session,
        owner,
        {key: n for key, n in deltas.items() if n},
        limits=limits,
        reserve=reserve,
        size=size,
    )


def lock_instances(
    session: Session, instance: InstanceRow
) -> Sequence[InstanceRow | ReplicaRow]:
    """Lock all instances of the share and return them.

    Call it before any of them is moved, so that everyone locks them in the
    same order. `instance` is a row of `instances.get`.
    """
    if instance.replica_state is None:
        return [instance]
    return replicas.lock_instances(session, instance.share_id)


def resize(
    session: Session,
    instance: InstanceRow,
    size: int,
    copies: Sequence[InstanceRow | ReplicaRow],
    *,
    reservations: Reservations = (),
    placed: tuple[str | None, int] = (None, 0),
) -> None:
    """Change the size of a share, and its usage and pool allocations.

    `copies` are those of `lock_instances`. The reservations for the change
    are committed if they match, and otherwise released: the share may have
    other replicas now than when they were made. `placed` is the pool in
    which space is already allocated, and the GiB.
    """
    before = instance.size
    if instance.replica_state is not None:
        before = share_instances.get(session, instance.id).size
    if size != before:
        shares.resize(session, instance.share_id, size)
    owner, difference = owner_of(instance), size - before
    deltas = size_deltas(instance, difference, len(copies))
    if list(reservations) == [to_reservation(owner, deltas)]:
        charges.commit_reservation(session, owner, deltas)
    else:
        charges.release_reservations(session, reservations)
        charges.adjust(session, owner, deltas)
    by_host = collections.Counter[str]()
    for copy in copies:
        if copy.host:
            by_host[copy.host] += difference
    if placed[0]:
        by_host[placed[0]] -= placed[1]
    for host in sorted(by_host):
        pools.adjust_allocated(session, host, by_host[host])


def remove_and_credit(
    session: Session,
    instance: InstanceRow,
    event: str = 'deleted',
    *,
    began_at: datetime.datetime | None = None,
) -> None:
    """Remove an instance by its last move and give back its quota.

    `began_at` is when the back end, which has removed it, began to.
    """
    size = instance.size
    if instance.replica_state is not None:
        # Its size may have changed since it was read.
        lock_instances(session, instance)
        instance = share_instances.get(session, instance.id)
        size = instance.size
    if share_moves.remove_instance(session, instance, event):
        charges.credit(session, owner_of(instance), deltas_of(instance))
        release_key(session, instance.project_id, instance.encryption_key_ref)
    elif instance.replica_state and size:
        charges.credit(session, owner_of(instance), replica_deltas(instance))
    # Quota is always changed before pools, to avoid deadlocks.
    _release(session, instance, size, began_at)


def remove_uncharged(
    session: Session, instance: InstanceRow, began_at: datetime.datetime | None = None
) -> None:
    """Remove an instance whose quota was given back before."""
    share_moves.remove_instance(session, instance)
    _release(session, instance, instance.size, began_at)


def _release(
    session: Session,
    instance: InstanceRow,
    size: int,
    began_at: datetime.datetime | None,
) -> None:
    """Free the room of an instance, at once if it is known to be unused.

    The back end may have none of an instance that it could not create.
    """
    if began_at is None or instance.launched_at is None:
        pools.adjust_allocated(session, instance.host, -size)
    else:
        pools.release(session, instance.host, size, began_at)


def remove_replica_and_credit(session: Session, instance: InstanceRow) -> None:
    """Remove a replica and the snapshots on it, and give back their quota.

    `instance` is a row of `instances.get`. A snapshot that is on no other
    replica is removed completely; that of one in deferred deletion was given
    back before.
    """
    for row in snapshots.list_on_share_instance(session, instance.id):
        remove = (
            snapshot_quota.remove_uncharged
            if row.status in HIDDEN_FROM_TENANTS
            else snapshot_quota.remove_and_credit
        )
        remove(session, row, 'removed')
    remove_and_credit(session, instance)


class Usage(typing.NamedTuple):
    """The charges of a share and its snapshots, without its key.

    `by_owner` has the usage of each user: snapshots are charged to those
    who took them.
    """

    total: dict[str, int]
    by_owner: dict[Owner, dict[str, int]]


def usage_of(session: Session, instance: InstanceRow, *, lock: bool = False) -> Usage:
    """Return the usage of a share that has one instance.

    Raises InvalidShareSnapshot unless all snapshots are available: other
    work may credit them to the owner that it has read. Those in deferred
    deletion have been credited.
    """
    by_owner = {owner_of(instance): Counter(deltas_of(instance))}
    for row in transfers.list_snapshots(session, instance.share_id, lock=lock):
        if row.status in HIDDEN_FROM_TENANTS:
            continue
        if row.status != SnapshotStatus.AVAILABLE:
            raise exception.InvalidShareSnapshot(
                reason=f'snapshot {row.id} is in status {row.status}; the '
                'share can be transferred if all are available'
            )
        owner = Owner(row.project_id, row.user_id, instance.share_type_id)
        by_owner.setdefault(owner, Counter()).update(snapshot_deltas(row.size))
    total = sum(by_owner.values(), Counter[str]())
    return Usage(dict(total), {owner: dict(used) for owner, used in by_owner.items()})


def reservation_of(
    session: Session, instance: InstanceRow, project_id: str
) -> dict[str, int]:
    """Return what a project is to be charged for a share it accepts."""
    key_ref = instance.encryption_key_ref
    is_new = key_ref is not None and not encryption_keys.is_used(
        session, project_id, key_ref
    )
    return {**usage_of(session, instance).total, **(DELTAS if is_new else {})}


def change_owner(
    session: Session,
    instance: InstanceRow,
    owner: Owner,
    *,
    reservations: Collection[list[typing.Any]],
    limits: Mapping[str, int],
) -> None:
    """Give a share and its snapshots to another owner, with their usage.

    The reservations of the new owner are committed if they match; a
    snapshot may have been deleted since they were made.
    """
    usage = usage_of(session, instance, lock=True)
    total, key_ref = usage.total, instance.encryption_key_ref
    with_key = [to_reservation(owner, {**total, **DELTAS})]
    has_reserved_key = list(reservations) == with_key
    transfers.move(session, instance.share_id, owner.project_id, owner.user_id)

    def charge() -> None:
        if has_reserved_key or list(reservations) == [to_reservation(owner, total)]:
            charges.commit_reservation(session, owner, total)
        else:
            charges.release_reservations(session, reservations)
            charges.adjust(session, owner, total, limits=limits)

    # One order for all transfers: two of them may exchange shares.
    changes: list[tuple[tuple[str, str], Callable[[], None]]] = [(_key(owner), charge)]
    for former, used in usage.by_owner.items():
        credit = functools.partial(charges.credit, session, former, used)
        changes.append((_key(former), credit))
    for _, change in sorted(changes, key=lambda one: one[0]):
        change()
    if key_ref is not None:
        is_new = encryption_keys.add_uses(session, owner, key_ref)
        if has_reserved_key and is_new:
            charges.commit_reservation(session, owner, DELTAS)
        elif has_reserved_key:
            charges.release_reservation(session, owner, DELTAS)
        elif is_new:
            charges.adjust(session, owner, DELTAS, limits=limits)
    release_key(session, instance.project_id, key_ref)


def _key(owner: Owner) -> tuple[str, str]:
    return owner.project_id, owner.user_id or ''


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
