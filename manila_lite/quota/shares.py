"""What a share counts for, and its end in the books."""

import typing

from manila_lite.db.queries import pools
from manila_lite.db.queries import shares
from manila_lite.db.session import Session
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner


def owner_of(instance: typing.Any) -> Owner:
    """Whose quota an instance counts against."""
    return Owner(instance.project_id, instance.user_id,
                 instance.share_type_id)


def deltas_of(instance: typing.Any) -> dict[str, int]:
    """What a share of one instance uses, by resource.

    What is yet to be taken over, or could not be, has no size and counts
    for nothing.
    """
    if not instance.size:
        return {}
    return {'shares': 1, **size_deltas(instance, instance.size),
            **({'share_replicas': 1} if instance.replication_type else {})}


def size_deltas(instance: typing.Any, size: int) -> dict[str, int]:
    """What `size` GiB of an instance use, by resource."""
    deltas = {'gigabytes': size}
    if instance.replication_type:
        deltas['replica_gigabytes'] = size
    return deltas


def replica_deltas(instance: typing.Any) -> dict[str, int]:
    """What one replica of a share uses beside the share, by resource."""
    return {'share_replicas': 1, 'replica_gigabytes': instance.size}


def discard(session: Session, instance: typing.Any,
            event: str = 'deleted') -> None:
    """Remove an instance by its last move, and what it counted for."""
    if shares.remove_instance(session, instance, event):
        charges.credit(session, owner_of(instance), deltas_of(instance))
    elif instance.replica_state and instance.size:
        charges.credit(session, owner_of(instance),
                       replica_deltas(instance))
    # Everybody changes quota before pools: else they wait for each other.
    pools.change_allocated(session, instance.host, -instance.size)


def discard_uncounted(session: Session, instance: typing.Any) -> None:
    """The same when its quota was given back before."""
    shares.remove_instance(session, instance)
    pools.change_allocated(session, instance.host, -instance.size)
