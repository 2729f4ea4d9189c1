"""Retry failed deferred deletions until they succeed."""

import contextlib

from manila_lite import exception
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus


class DeferredDeletion:
    """The deferred deletions of one back end."""

    def __init__(
        self, db: Database, provisioning_client: Client, service_host: str
    ):
        self.db = db
        self.provisioning_client = provisioning_client.on(service_host)
        self.service_host = service_host

    def retry(self) -> int:
        """Submit failed deletions again; return the count."""
        return self.db.write(self._retry)

    def _retry(self, session: Session) -> int:
        failed = share_instances.list_without_work(
            session,
            [InstanceStatus.ERROR_DEFERRED_DELETING],
            self.service_host,
        )
        for row in failed:
            # Another manager of the back end may have just done the same.
            with contextlib.suppress(
                exception.InvalidStatus, exception.ResourceNotFound
            ):
                fire(session, SHARE_INSTANCE, row.id, 'retry_deferred')
                self.provisioning_client.delete_share_instance_deferred(
                    session, owner_context(row), instance_id=row.id
                )
        return len(failed)
