"""The usage of a project: guarded changes of its usage rows.

One UPDATE changes the row of the project and those of the user and the
share type. It runs in the transaction that writes the resource itself, so
that usage always equals a recount: `in_use` of the resources, `reserved`
of the work still owed.
"""

from collections.abc import Iterable, Mapping
import logging
import typing

from manila_lite import exception, metrics
from manila_lite.db.queries.quotas import usages
from manila_lite.db.queries.quotas.quotas import PROJECT, SHARE_TYPE, USER, Owner
from manila_lite.db.queries.quotas.usages import Change
from manila_lite.db.rows import UsageRow
from manila_lite.db.session import Database, Session
from manila_lite.quota import recount, sets
from manila_lite.quota.limits import NAMES, PER_SHARE

LOG = logging.getLogger(__name__)

Deltas = Mapping[str, int]


CHARGE = Change('charge', 1, 0, limited=True)
RESERVE = Change('reserve', 0, 1, limited=True)
COMMIT = Change('commit', 1, -1)
RELEASE = Change('release', 0, -1)
CREDIT = Change('credit', -1, 0)
ADJUST = Change('adjust', 1, 0)


def charge(
    session: Session,
    owner: Owner,
    deltas: Deltas,
    *,
    limits: Mapping[str, int],
    reserve: bool = False,
    size: int | None = None,
) -> None:
    """Add to the usage of an owner; raises a QuotaError past a limit.

    With `reserve`, the charge is a reservation owned by the work that is
    submitted next in this transaction, until it is committed or released.
    `size` is the size of one share, for the limit on single shares.
    `limits` are those of the options, for projects without usage rows.
    Negative deltas are never refused.
    """
    requested = dict(deltas)
    if size is not None:
        requested[PER_SHARE] = size
    _apply(session, RESERVE if reserve else CHARGE, owner, requested, limits)
    if reserve:
        session.charges.append(recount.to_reservation(owner, deltas))


def commit_reservation(session: Session, owner: Owner, deltas: Deltas) -> None:
    """Turn reserved amounts into usage."""
    _apply(session, COMMIT, owner, deltas)


def release_reservation(session: Session, owner: Owner, deltas: Deltas) -> None:
    """Give back reserved amounts."""
    _apply(session, RELEASE, owner, deltas)


def release_reservations(
    session: Session, reservations: Iterable[list[typing.Any]]
) -> None:
    """Give back all reservations in the `charges` of a work row."""
    for owner, deltas in map(recount.from_reservation, reservations):
        release_reservation(session, owner, deltas)


def credit(session: Session, owner: Owner, deltas: Deltas) -> None:
    """Subtract from the usage of an owner."""
    _apply(session, CREDIT, owner, deltas)


def adjust(
    session: Session,
    owner: Owner,
    deltas: Deltas,
    *,
    limits: Mapping[str, int] | None = None,
) -> None:
    """Add a difference that already exists, regardless of limits.

    `limits` are those of the options, if the owner may be new.
    """
    _apply(session, ADJUST, owner, deltas, limits)


class ChangeRefused(exception.QuotaError):
    """A usage row was missing, at its limit or too low for a change.

    `repair`, which `Database.write` calls after the rollback, finds out
    which one: until then, the changed rows have other values. The transaction
    is then run again.
    """

    message = 'Quota of project {project_id} refuses to {change} {deltas}.'

    def __init__(
        self, change: Change, owner: Owner, deltas: Deltas, limits: Mapping[str, int]
    ):
        super().__init__(project_id=owner.project_id, change=change.name, deltas=deltas)
        self.change = change
        self.owner = owner
        self.deltas = deltas
        self.limits = limits

    def repair(self, db: Database) -> None:
        """Create missing rows, or raise the error of the limit."""
        if db.write(sets.create_usages, self.limits, self.owner.keys(self.deltas)):
            return
        rows = db.read(_read, self.owner, self.deltas)
        if self.change.limited:
            for row in rows:
                _check(row, self.deltas[row.resource])
        if any(self._is_too_low(row) for row in rows):
            wrong = db.write(recount.correct, self.limits, self.owner.project_id)
            LOG.error(
                'Usage of project %s was too low to %s %s and has been recounted: %s',
                self.owner.project_id,
                self.change.name,
                dict(self.deltas),
                wrong,
            )

    def _is_too_low(self, row: UsageRow) -> bool:
        delta = 0 if row.resource == PER_SHARE else self.deltas[row.resource]
        return (
            row.in_use + self.change.in_use * delta < 0
            or row.reserved + self.change.reserved * delta < 0
        )


def _apply(
    session: Session,
    change: Change,
    owner: Owner,
    deltas: Deltas,
    limits: Mapping[str, int] | None = None,
) -> None:
    deltas = {name: delta for name, delta in sorted(deltas.items()) if delta}
    if not deltas:
        return
    changed = usages.change(session, change, owner, deltas, only_checked=PER_SHARE)
    if changed != len(owner.keys(deltas)):
        raise ChangeRefused(change, owner, deltas, limits or {})


# Refusals

_ERRORS: dict[str, type[exception.QuotaError]] = {
    'shares': exception.ShareLimitExceeded,
    'gigabytes': exception.ShareSizeExceedsAvailableQuota,
    'snapshots': exception.SnapshotLimitExceeded,
    'snapshot_gigabytes': exception.SnapshotSizeExceedsAvailableQuota,
    'share_networks': exception.ShareNetworksLimitExceeded,
    'share_replicas': exception.ShareReplicasLimitExceeded,
    'replica_gigabytes': exception.ShareReplicaSizeExceedsAvailableQuota,
    'encryption_keys': exception.EncryptionKeysLimitExceeded,
    'share_groups': exception.ShareGroupsLimitExceeded,
    'share_group_snapshots': exception.ShareGroupSnapshotsLimitExceeded,
    'backups': exception.BackupLimitExceeded,
    'backup_gigabytes': exception.ShareBackupSizeExceedsAvailableQuota,
    PER_SHARE: exception.ShareSizeExceedsLimit,
}
_WHAT = {PROJECT: '', SHARE_TYPE: 'share type ', USER: 'user '}


def _read(session: Session, owner: Owner, deltas: Deltas) -> typing.Sequence[UsageRow]:
    rows = usages.list_for_owner(session, owner, deltas)
    return sorted(rows, key=lambda row: (row.scope, NAMES.index(row.resource)))


def _check(row: UsageRow, requested: int) -> None:
    """Raise the error of the resource if the row is at its limit."""
    used = row.in_use + row.reserved
    if requested <= 0 or row.hard_limit < 0 or used + requested <= row.hard_limit:
        return
    metrics.QUOTA_REFUSALS.increment(row.resource)
    raise _ERRORS.get(row.resource, exception.QuotaExceeded)(
        resource=row.resource,
        what=_WHAT[row.scope],
        asked=requested,
        used=used,
        allowed=row.hard_limit,
        size=requested,
        limit=row.hard_limit,
    )
