"""Ensure that shares are exported as recorded.

An administrator requests it, or a back end that starts with changed
information. The work covers the shares of its service page by page and is
queued again after each page, so that other work is not delayed.
"""

from collections.abc import Mapping
import dataclasses
import hashlib
import logging
import typing
from typing import Annotated

import orjson

from manila_lite import exception, messages
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.services import services
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.session import Database, Session
from manila_lite.db.transitions import fire
from manila_lite.host import ServiceHost
from manila_lite.rpc.contract import Client, implements
from manila_lite.rpc.share import BINARY, EnsuringRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.access.rules import AccessEndpoint
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.endpoint import owner_context
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

PAGE_SIZE = 100
"""Number of shares passed to the driver in one call."""

# Shares in `ensuring` were left by a previous holder of the work.
_ENSURABLE = (InstanceStatus.AVAILABLE, InstanceStatus.ENSURING)

EnsureReplies = Mapping[str, base.EnsureReply]


class SharePage(typing.NamedTuple):
    """A page of shares; `last` is the marker of the next page, if any."""

    instances: list[LoadedInstance]
    last: str | None


@implements(EnsuringRpc)
@dataclasses.dataclass(eq=False)
class EnsuringEndpoint:
    """Ensures the shares of one back end.

    With `update_status`, shares are shown as ensuring when an
    administrator has requested it.
    """

    db: Database
    driver: base.ShareDriver
    ensuring_client: Client[EnsuringRpc]
    service_host: ServiceHost
    name_template: Annotated[str, Option('share_name_template')]
    update_status: Annotated[bool, Option('update_shares_status_on_ensure')]
    message_ttl: Annotated[int, Option('message_ttl')]
    access: AccessEndpoint
    page: int = PAGE_SIZE

    def __post_init__(self) -> None:
        self.ensuring_client = self.ensuring_client.on(self.service_host)

    # Start

    def start(self) -> None:
        """Submit the work unless the back end is unchanged.

        A driver without this information may always have changed. Any
        other error prevents its start, as published.
        """
        try:
            info = _digest(self.driver.get_backend_info(driver_context()))
        except NotImplementedError:
            info = None
        self.db.write(self._start, info)

    def _start(self, session: Session, info: str | None) -> None:
        service = services.get(session, self.service_host, BINARY)
        if info is not None and info == service.backend_info:
            return
        # Healthy shares stay available while they are checked.
        self.ensuring_client.ensure_shares(
            session, RequestContext(), service_id=service.id, update_status=False
        )
        # A session that is frozen may have locked it: drivers start anyway,
        # and the next start ensures the shares again.
        if services.lock_if_free(session, service.id):
            services.restart_ensuring(session, service.id, info)

    # The work

    def prepare_ensure_shares(self, session: Session, job: Claim) -> SharePage:
        rows = share_instances.list_service_page(
            session, self.service_host, _ENSURABLE, job.args['after'], self.page
        )
        if self.update_status and job.args['update_status']:
            for row in rows:
                if row.status == InstanceStatus.AVAILABLE:
                    self._begin(session, row.id)
        loaded = share_view.load_instances(session, [row.id for row in rows])
        return SharePage(
            [one for one in loaded if one.row.status in _ENSURABLE],
            rows[-1].id if len(rows) == self.page else None,
        )

    def _begin(self, session: Session, instance_id: str) -> None:
        try:
            fire(session, SHARE_INSTANCE, instance_id, 'ensure')
        except _SKIPPED as error:
            LOG.info('Share instance is skipped: %s', error)

    def ensure_shares(
        self,
        job: JobContext,
        service_id: str,
        update_status: bool = True,
        after: str = '',
    ) -> None:
        page: SharePage = job.prepared
        replies = self._call_driver(
            [
                share_view.share_for_driver(one, self.name_template)
                for one in page.instances
            ]
        )
        if page.last is None:
            job.finish(self._finish, job.claim, page, replies)
        else:
            job.continue_with(
                {**job.args, 'after': page.last}, self._record, page, replies
            )

    def dropped_ensure_shares(self, session: Session, job: Claim) -> None:
        services.finish_ensuring(session, job.args['service_id'], job.id)

    # The driver

    def _call_driver(self, shares: list[base.ShareForDriver]) -> EnsureReplies:
        """Return the replies; driver errors are only logged, as published."""
        if not shares:
            return {}
        try:
            return self.driver.ensure_shares(driver_context(), shares) or {}
        except NotImplementedError:
            return {share.id: self._ensure_share(share) for share in shares}
        except exception.WorkHandedOn:
            raise
        except Exception:
            LOG.exception(
                'The driver of %s failed to ensure %d shares',
                self.service_host,
                len(shares),
            )
            return {}

    def _ensure_share(self, share: base.ShareForDriver) -> base.EnsureReply:
        try:
            exports = self.driver.ensure_share(
                driver_context(), share, share_server=share.share_server
            )
        except exception.WorkHandedOn:
            raise
        except Exception:
            LOG.exception(
                'The driver of %s failed to ensure share instance %s',
                self.service_host,
                share.id,
            )
            return {}
        return {'export_locations': exports}

    # The outcome

    def _finish(
        self, session: Session, job: Claim, page: SharePage, replies: EnsureReplies
    ) -> None:
        # First, so that no row of a share is locked if this one is not free.
        services.finish_ensuring(session, job.args['service_id'], job.id)
        self._record(session, page, replies)

    def _record(
        self, session: Session, page: SharePage, replies: EnsureReplies
    ) -> None:
        for instance in page.instances:
            reply = replies.get(instance.row.id) or {}
            try:
                self._record_one(session, instance, reply)
            except _SKIPPED as error:
                LOG.info('Share instance changed while it was ensured: %s', error)
        self._reapply_rules(
            session,
            [
                one
                for one in page.instances
                if (replies.get(one.row.id) or {}).get('reapply_access_rules')
            ],
        )

    def _reapply_rules(self, session: Session, instances: list[LoadedInstance]) -> None:
        """Resync the access rules of these shares."""
        rows = {one.row.id: one.row for one in instances}
        if not rows:
            return
        for instance_id in share_rules.list_instances_with_rules(session, rows):
            row = rows[instance_id]
            self.access.resync(session, owner_context(row), row.id)

    def _record_one(
        self, session: Session, instance: LoadedInstance, reply: base.EnsureReply
    ) -> None:
        """Write the changes after the move that guards them."""
        row = instance.row
        failed = reply.get('status') == InstanceStatus.ERROR
        exports = base.normalise_export_locations(reply.get('export_locations'))
        metadata = reply.get('metadata') or {}
        if row.status == InstanceStatus.AVAILABLE:
            if not (failed or _differs(instance, exports, metadata)):
                return
            fire(session, SHARE_INSTANCE, row.id, 'ensure')
        fire(session, SHARE_INSTANCE, row.id, 'ensure_failed' if failed else 'ensured')
        if exports:
            share_instances.replace_export_locations(session, row.id, exports)
        if metadata:
            shares.METADATA.merge(session, row.share_id, metadata)
        if failed:
            messages.record(
                session,
                row.project_id,
                messages.Action.UPDATE,
                ('SHARE', row.share_id),
                self.message_ttl,
                request_id=session.by.request_id if session.by else None,
            )


_SKIPPED = (exception.InvalidStatus, exception.ResourceNotFound)


def _digest(info: Mapping[str, str]) -> str:
    return hashlib.sha256(orjson.dumps(info, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _differs(
    instance: LoadedInstance,
    exports: list[base.ExportLocation],
    metadata: dict[str, str],
) -> bool:
    known = {location.path for location in instance.exports}
    return (
        bool(exports)
        and known != {one['path'] for one in exports}
        or not metadata.items() <= instance.metadata.items()
    )
