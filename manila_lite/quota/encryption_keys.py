"""The quota of encryption keys: each key of a project is charged once.

The usage of shares is changed first, to avoid deadlocks. A transfer takes
the key of the new owner before it, to know what to charge; it is run again
if it loses a deadlock by that.
"""

from collections.abc import Mapping

from manila_lite.db.queries.shares import encryption_keys
from manila_lite.db.session import Session
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
