"""Makes sure that shares can be reached as their users were told.

An administrator asks for it, or a back end that starts and is not what it
was. The work takes the shares of its service page by page, each page in a
turn of its own, so that other work is not kept waiting.
"""

from collections.abc import Mapping
import hashlib
import logging
import typing

import orjson

from manila_lite import exception
from manila_lite import messages
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.admin import services
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Database
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.rpc.contract import Client
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import BINARY
from manila_lite.rpc.share import EnsuringRpc
from manila_lite.share.drivers.base import EnsureReply
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.access.share_rules import AccessEndpoint
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus

LOG = logging.getLogger(__name__)

PAGE_SIZE = 100
"""How many shares a driver is asked about at once."""

# Those that are ensuring were left by a holder of the work who died.
_ENSURABLE = (InstanceStatus.AVAILABLE, InstanceStatus.ENSURING)

EnsureReplies = Mapping[str, EnsureReply]


class SharePage(typing.NamedTuple):
    """Some of the shares; `last` is where others follow, or None."""

    found: list[LoadedInstance]
    last: str | None


@implements(EnsuringRpc)
class EnsuringEndpoint:
    """The ensuring of the shares of one back end.

    `update_status` shows shares as ensuring when an administrator asks.
    """

    def __init__(
        self,
        db: Database,
        driver: ShareDriver,
        ensurings: Client,
        service_host: str,
        *,
        name_template: str,
        update_status: bool,
        message_ttl: int,
        access: AccessEndpoint,
        page: int = PAGE_SIZE,
    ):
        self.db = db
        self.driver = driver
        self.ensurings = ensurings.on(service_host)
        self.service_host = service_host
        self.name_template = name_template
        self.update_status = update_status
        self.message_ttl = message_ttl
        self.access = access
        self.page = page

    # Start

    def start(self) -> None:
        """Ask for the work unless the back end is what it was.

        A driver that cannot tell may always have changed; any other error
        keeps it from starting, as published.
        """
        try:
            info = _digest(self.driver.get_backend_info(RequestContext()))
        except NotImplementedError:
            info = None
        self.db.write(self._start, info)

    def _start(self, session: Session, info: str | None) -> None:
        service = services.get(session, self.service_host, BINARY)
        if info is not None and info == service.backend_info:
            return
        # Healthy shares stay available while they are looked at.
        self.ensurings.ensure_shares(
            session,
            RequestContext(),
            service_id=service.id,
            update_status=False,
        )
        services.restart_ensuring(session, service.id, info)

    # The work

    def prepare_ensure_shares(self, session: Session, job) -> SharePage:
        rows = share_instances.list_service_page(
            session,
            self.service_host,
            _ENSURABLE,
            job.args['after'],
            self.page,
        )
        if self.update_status and job.args['update_status']:
            for row in rows:
                if row.status == InstanceStatus.AVAILABLE:
                    self._begin(session, row.id)
        found = share_view.load_instances(session, [row.id for row in rows])
        return SharePage(
            [one for one in found if one.row.status in _ENSURABLE],
            rows[-1].id if len(rows) == self.page else None,
        )

    def _begin(self, session, instance_id):
        try:
            fire(session, SHARE_INSTANCE, instance_id, 'ensure')
        except _LEFT_ALONE as error:
            LOG.info('It is not ensured: %s', error)

    def ensure_shares(self, job, service_id, update_status=True, after=''):
        page = job.prepared
        answers = self._ask(
            [
                share_view.share_for_driver(found, self.name_template)
                for found in page.found
            ]
        )
        if page.last is None:
            job.finish(self._end, job.claim, page, answers)
        else:
            job.continue_with(
                {**job.args, 'after': page.last}, self._note, page, answers
            )

    def dropped_ensure_shares(self, session, job):
        services.finish_ensuring(session, job.args['service_id'], job.id)

    # What the driver says

    def _ask(self, found: list[ShareForDriver]) -> EnsureReplies:
        """Its answers; as published, errors of a driver are but logged."""
        if not found:
            return {}
        try:
            return self.driver.ensure_shares(RequestContext(), found) or {}
        except NotImplementedError:
            return {share.id: self._ask_about(share) for share in found}
        except Exception:
            LOG.exception(
                '%s did not ensure %d shares', self.service_host, len(found)
            )
            return {}

    def _ask_about(self, share: ShareForDriver) -> EnsureReply:
        try:
            exports = self.driver.ensure_share(
                RequestContext(), share, share_server=share.share_server
            )
        except Exception:
            LOG.exception(
                '%s did not ensure share instance %s',
                self.service_host,
                share.id,
            )
            return {}
        return {'export_locations': exports}

    # What is noted

    def _end(self, session, job, page, answers):
        self._note(session, page, answers)
        services.finish_ensuring(session, job.args['service_id'], job.id)

    def _note(
        self, session: Session, page: SharePage, answers: EnsureReplies
    ) -> None:
        for found in page.found:
            try:
                self._note_one(session, found, answers.get(found.row.id) or {})
            except _LEFT_ALONE as error:
                LOG.info('It changed while it was ensured: %s', error)
        self._reapply(
            session,
            [
                found
                for found in page.found
                if (answers.get(found.row.id) or {}).get(
                    'reapply_access_rules'
                )
            ],
        )

    def _reapply(self, session: Session, page: list[LoadedInstance]) -> None:
        """Have the rules of these shares brought to the back end anew."""
        found = {one.row.id: one.row for one in page}
        if not found:
            return
        for instance_id in share_rules.list_instances_with_rules(
            session, found
        ):
            row = found[instance_id]
            self.access.resync(
                session,
                RequestContext(project_id=row.project_id, user_id=row.user_id),
                row.id,
            )

    def _note_one(
        self, session: Session, found: LoadedInstance, answer: EnsureReply
    ) -> None:
        """Write what has changed, behind the move that guards it."""
        row = found.row
        failed = answer.get('status') == InstanceStatus.ERROR
        exports = normalise_export_locations(answer.get('export_locations'))
        metadata = answer.get('metadata') or {}
        if row.status == InstanceStatus.AVAILABLE:
            if not (failed or _differ(found, exports, metadata)):
                return
            fire(session, SHARE_INSTANCE, row.id, 'ensure')
        fire(
            session,
            SHARE_INSTANCE,
            row.id,
            'ensure_failed' if failed else 'ensured',
            updated_at=session.now,
        )
        if exports:
            share_instances.replace_export_locations(session, row.id, exports)
        if metadata:
            shares.METADATA.merge(session, row.share_id, metadata)
        if failed:
            messages.record(
                session,
                project_id=row.project_id,
                request_id=session.by and session.by.request_id,
                action=messages.Action.UPDATE,
                detail=messages.Detail.UNKNOWN_ERROR,
                resource_type='SHARE',
                resource_id=row.share_id,
                ttl=self.message_ttl,
            )


_LEFT_ALONE = (exception.InvalidStatus, exception.ResourceNotFound)


def _digest(info: Mapping[str, str]) -> str:
    return hashlib.sha256(
        orjson.dumps(info, option=orjson.OPT_SORT_KEYS)
    ).hexdigest()


def _differ(found: LoadedInstance, exports, metadata) -> bool:
    known = {location.path for location in found.exports}
    return (
        bool(exports)
        and known != {one['path'] for one in exports}
        or not metadata.items() <= found.metadata.items()
    )
