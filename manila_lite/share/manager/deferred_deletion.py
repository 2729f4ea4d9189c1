"""Retry failed deferred deletions until they succeed."""

from collections.abc import Sequence
import contextlib

from manila_lite import exception
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import OwnedInstanceRow
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.states.share_instance import SHARE_INSTANCE

BATCH = 100
"""The number of deletions submitted in one transaction."""


class DeferredDeletion:
    """The deferred deletions of one back end."""

    def __init__(
        self,
        db: Database,
        provisioning_client: Client,
        service_host: str,
        batch: int = BATCH,
    ):
        self.db = db
        self.provisioning_client = provisioning_client.on(service_host)
        self.service_host = service_host
        self.batch = batch

    def retry(self) -> int:
        """Submit failed deletions again; return the count.

        When none has failed, this only reads.
        """
        count, after = 0, ''
        while self.db.read(self._list_failed, after):
            failed = self.db.write(self._retry, after)
            count += len(failed)
            if len(failed) < self.batch:
                break
            # What fails again meanwhile waits for the next pass.
            after = failed[-1].id
        return count

    def _list_failed(
        self, session: Session, after: str
    ) -> Sequence[OwnedInstanceRow]:
        return share_instances.list_failed_deferred_deletions(
            session, self.service_host, after, self.batch
        )

    def _retry(
        self, session: Session, after: str
    ) -> Sequence[OwnedInstanceRow]:
        failed = self._list_failed(session, after)
        for row in failed:
            # Another manager of the back end may have just done the same.
            with contextlib.suppress(
                exception.InvalidStatus, exception.ResourceNotFound
            ):
                fire(session, SHARE_INSTANCE, row.id, 'retry_deferred')
                self.provisioning_client.delete_share_instance_deferred(
                    session, owner_context(row), instance_id=row.id
                )
        return failed
