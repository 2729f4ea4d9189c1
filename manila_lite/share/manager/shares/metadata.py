"""Pass metadata to drivers, and say how the data service reaches shares."""

import contextlib
import dataclasses
import typing
from typing import Annotated

from manila_lite import context, exception, messages
from manila_lite.conf import Option
from manila_lite.context import FencingToken, RequestContext
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Database, Session
from manila_lite.messages import Action, Detail
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import ConnectionsRpc, ShareMetadataRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim


class MetadataUpdate(typing.NamedTuple):
    """A share instance and the values that its driver is to apply."""

    instance: LoadedInstance
    values: dict[str, str]


@implements(ShareMetadataRpc)
@dataclasses.dataclass(eq=False)
class ShareMetadataEndpoint:
    """Passes changed metadata of shares to the driver of a back end."""

    db: Database
    driver: ShareDriver
    updates: Client[ShareMetadataRpc]
    name_template: Annotated[str, Option('share_name_template')]
    message_ttl: Annotated[int, Option('message_ttl')]

    def prepare_update_share_from_metadata(
        self, session: Session, job: Claim
    ) -> MetadataUpdate:
        """Read the current values, which may be later than the request."""
        instance = share_view.load_instance(session, job.resource_id)
        return MetadataUpdate(
            instance,
            {
                key: instance.metadata[key]
                for key in job.args['keys']
                if key in instance.metadata
            },
        )

    def update_share_from_metadata(
        self, job: JobContext, share_instance_id: str, keys: list[str]
    ) -> None:
        update: MetadataUpdate = job.prepared
        instance = update.instance
        try:
            self.driver.update_share_from_metadata(
                driver_context(),
                share_view.share_for_driver(instance, self.name_template),
                update.values,
                share_server=instance.share_server,
            )
            job.finish(
                self._notify_project,
                job.claim,
                instance.row,
                Detail.UPDATE_METADATA_SUCCESS,
            )
        except exception.WorkHandedOn:
            raise  # nothing was called
        except exception.ClaimLost:
            # The call may have undone the one of a worker after this one.
            self.db.write(self._submit_again, job.claim)
            raise

    def failed_update_share_from_metadata(
        self, session: Session, job: Claim, error: Exception
    ) -> bool:
        row = share_instances.find(session, job.resource_id)
        if row is not None:
            self._notify_project(session, job, row, Detail.UPDATE_METADATA_FAILURE)
        return True

    def _submit_again(self, session: Session, job: Claim) -> None:
        row = share_instances.find(session, job.resource_id)
        if row is not None:
            self.updates.on(row.host).update_share_from_metadata(
                session,
                owner_context(row),
                share_instance_id=row.id,
                keys=job.args['keys'],
            )

    def _notify_project(
        self, session: Session, job: Claim, row: InstanceRow, detail: Detail
    ) -> None:
        """Notify the project of the share, not that of the request."""
        messages.record(
            session,
            row.project_id,
            Action.UPDATE_METADATA,
            ('SHARE', row.share_id),
            self.message_ttl,
            detail=detail,
            request_id=job.request_id,
        )


@implements(ConnectionsRpc)
@dataclasses.dataclass(eq=False)
class ConnectionsEndpoint:
    """Asks the driver of a back end."""

    db: Database
    driver: ShareDriver
    name_template: Annotated[str, Option('share_name_template')]

    def get_connection(
        self, ctx: RequestContext, instance_id: str, fence: int = 0
    ) -> dict[str, typing.Any]:
        try:
            with _fenced(instance_id, fence):
                found = self.driver.connection_get_info(*self._arguments(instance_id))
        except NotImplementedError as error:
            raise exception.ContentUnreachable(
                instance_id=instance_id, reason='its driver does not offer it'
            ) from error
        except OSError as error:
            raise exception.ContentUnreachable(
                instance_id=instance_id, reason=str(error)
            ) from error
        return dict(found)

    def end_connection(
        self, ctx: RequestContext, instance_id: str, fence: int = 0
    ) -> None:
        with _fenced(instance_id, fence):
            self.driver.connection_end(*self._arguments(instance_id))

    def _arguments(self, instance_id: str) -> tuple[typing.Any, ...]:
        instance = self.db.read(share_view.load_instance, instance_id)
        share = share_view.share_for_driver(instance, self.name_template)
        return driver_context(), share, instance.share_server


def _fenced(instance_id: str, fence: int) -> contextlib.AbstractContextManager[None]:
    """Order the calls of data services; other calls for the share may be later."""
    return context.fenced(FencingToken(f'connection-{instance_id}', fence))
