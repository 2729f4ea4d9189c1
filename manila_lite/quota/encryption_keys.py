"""The quota of encryption keys: each key of a project is charged once.

The usage of shares is changed first, to avoid deadlocks: all changes of keys of a
project wait for that row.

Release 1 did not count the keys: its shares use keys that are not charged, and
a deletion of one of them releases a use by another share.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
import typing

from manila_lite.db.queries.shares import encryption_keys
from manila_lite.db.session import Database, Session
from manila_lite.quota import charges
from manila_lite.quota.charges import Owner

DELTAS = {'encryption_keys': 1}


def charge_key(
    session: Session,
    owner: Owner,
    key_ref: str | None,
    *,
    limits: Mapping[str, int],
    shares: int = 1,
) -> None:
    """Charge for the key of new shares unless another share uses it.

    Raises EncryptionKeysLimitExceeded. `limits` are those of the options.
    """
    if key_ref is not None and encryption_keys.add_uses(
        session, owner, key_ref, shares
    ):
        charges.charge(session, owner, DELTAS, limits=limits)


def release_key(session: Session, project_id: str, key_ref: str | None) -> None:
    """Give back the quota of a key with the last share that uses it."""
    if key_ref is None:
        return
    owner = encryption_keys.release(session, project_id, key_ref)
    if owner is not None:
        charges.credit(session, owner, DELTAS)


BATCH = 100
"""The number of keys that one transaction corrects."""


def correct_some_uses(db: Database, limits: Mapping[str, int], most: int) -> int:
    """Correct up to `most` keys whose uses are wrong; return their number.

    A key past the limit is charged nevertheless: it is in use. `limits` are
    those of the options.
    """
    wrong: dict[str, list[str]] = {}
    found = db.read(encryption_keys.list_wrong, most)
    for row in found:
        wrong.setdefault(row.project_id, []).append(row.key_ref)
    for project_id, keys in wrong.items():
        for start in range(0, len(keys), BATCH):
            db.write(correct_uses, project_id, keys[start : start + BATCH], limits)
    return len(found)


def correct_uses(
    session: Session,
    project_id: str,
    key_refs: Collection[str],
    limits: Mapping[str, int],
) -> None:
    """Set the uses of keys, and their quota, to the counted values."""
    _lock_shares(session, project_id, limits)
    stored = {
        row.key_ref: row for row in encryption_keys.lock(session, project_id, key_refs)
    }
    used: dict[str, list[typing.Any]] = {}
    for row in encryption_keys.list_users(session, project_id, key_refs):
        used.setdefault(row.key_ref, []).append(row)
    charged: Counter[Owner] = Counter()
    for key_ref in sorted(key_refs):
        charged.update(
            _correct_key(
                session, project_id, key_ref, stored.get(key_ref), used.get(key_ref, [])
            )
        )
    for owner, number in sorted(charged.items(), key=lambda one: _key(one[0])):
        charges.adjust(
            session,
            owner,
            {name: number * delta for name, delta in DELTAS.items()},
            limits=limits,
        )


def _lock_shares(session: Session, project_id: str, limits: Mapping[str, int]) -> None:
    """Make other changes of shares of the project wait for this transaction.

    They all change this usage row. It is changed here, not only locked: other
    nodes of Galera notice changes, but not locks.
    """
    owner = Owner(project_id)
    for change in (1, -1):
        charges.adjust(session, owner, {'shares': change}, limits=limits)


def _correct_key(
    session: Session,
    project_id: str,
    key_ref: str,
    stored: typing.Any,
    users: Sequence[typing.Any],
) -> dict[Owner, int]:
    """Correct one key; return the amount to charge to its owner."""
    if stored is None:
        if not users:
            return {}
        first = users[0]
        owner = Owner(project_id, first.user_id, first.share_type_id)
        encryption_keys.add_uses(session, owner, key_ref, len(users))
        return {owner: 1}
    if not users:
        encryption_keys.forget(session, project_id, key_ref)
        return {Owner(project_id, stored.user_id, stored.share_type_id): -1}
    if stored.uses != len(users):
        encryption_keys.set_uses(session, project_id, key_ref, len(users))
    return {}


def _key(owner: Owner) -> tuple[str, str]:
    return owner.share_type_id or '', owner.user_id or ''
