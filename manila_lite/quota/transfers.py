"""The quota of a share that is transferred, with all its snapshots."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
import functools
import typing

from manila_lite import exception
from manila_lite.db.queries.shares import encryption_keys, transfers
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner
from manila_lite.quota.encryption_keys import DELTAS, release_key
from manila_lite.quota.recount import to_reservation
from manila_lite.quota.shares import deltas_of, owner_of
from manila_lite.quota.snapshots import deltas_of as snapshot_deltas
from manila_lite.states.snapshot_instance import HIDDEN_FROM_TENANTS, SnapshotStatus


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
