"""The end of a replica in the books."""

import typing

from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.session import Session
from manila_lite.quota import shares as of_shares
from manila_lite.quota import snapshots as of_snapshots


def remove_and_credit(session: Session, instance: typing.Any) -> None:
    """Remove a replica by its last move, and the snapshots on it.

    `instance` is a row as `share_instances.get` reads it. A snapshot that
    is on no other replica goes, too.
    """
    for row in snapshots.list_on_share_instance(session, instance.id):
        of_snapshots.remove_and_credit(session, row, 'removed')
    of_shares.remove_and_credit(session, instance)
