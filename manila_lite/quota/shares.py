"""What a share counts for, its size, and its end in the books.

A share counts once, and each of its replicas beside it. Who changes the
size, or removes one of several, takes all replicas first: what is then
read of them stays true until the change is written.
"""

import collections
from collections.abc import Collection, Sequence
import typing

from manila_lite.db.queries.admin import pools
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Session
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.recount import to_reservation

Reservations = Collection[list[typing.Any]]
"""The `charges` of a job."""


def owner_of(instance: typing.Any) -> Owner:
    """Whose quota an instance counts against."""
    return Owner(instance.project_id, instance.user_id, instance.share_type_id)


def deltas_of(instance: typing.Any) -> dict[str, int]:
    """What a share of one instance uses, by resource.

    What is yet to be taken over, or could not be, has no size and counts
    for nothing.
    """
    if not instance.size:
        return {}
    return {
        'shares': 1,
        **size_deltas(instance, instance.size),
        **({'share_replicas': 1} if instance.replication_type else {}),
    }


def size_deltas(
    instance: typing.Any, size: int, replicas: int = 1
) -> dict[str, int]:
    """What `size` GiB of a share use, by resource.

    `replicas` is how many it has, where it can have any.
    """
    deltas = {'gigabytes': size}
    if instance.replication_type:
        deltas['replica_gigabytes'] = size * replicas
    return deltas


def replica_deltas(instance: typing.Any) -> dict[str, int]:
    """What one replica of a share uses beside the share, by resource."""
    return {'share_replicas': 1, 'replica_gigabytes': instance.size}


def lock_instances(
    session: Session, instance: typing.Any
) -> Sequence[typing.Any]:
    """All instances of the share, which stay as they are until the end.

    To be called before any of them is moved, so that all who do take them
    in one order. `instance` is a row as `share_instances.get` reads it.
    """
    if instance.replica_state is None:
        return [instance]
    return replicas.lock_instances(session, instance.share_id)


def resize(
    session: Session,
    instance: typing.Any,
    size: int,
    copies: Sequence[typing.Any],
    *,
    reservations: Reservations = (),
    placed: tuple[str | None, int] = (None, 0),
) -> None:
    """Give a share another size, and note what that changes in the books.

    `copies` are those of `take_copies`. What was reserved for the change
    turns into use, or goes back: by now the share may have other replicas
    than when it was reserved for them. `placed` is the pool in which room
    has been taken for it already, and how much.
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
    session: Session, instance: typing.Any, event: str = 'deleted'
) -> None:
    """Remove an instance by its last move, and what it counted for."""
    size = instance.size
    if instance.replica_state is not None:
        # It may have been given another size since it was read.
        lock_instances(session, instance)
        instance = share_instances.get(session, instance.id)
        size = instance.size
    if shares.remove_instance(session, instance, event):
        charges.credit(session, owner_of(instance), deltas_of(instance))
    elif instance.replica_state and size:
        charges.credit(session, owner_of(instance), replica_deltas(instance))
    # Everybody changes quota before pools: else they wait for each other.
    pools.adjust_allocated(session, instance.host, -size)


def remove_uncharged(session: Session, instance: typing.Any) -> None:
    """The same when its quota was given back before."""
    shares.remove_instance(session, instance)
    pools.adjust_allocated(session, instance.host, -instance.size)
