"""Hand new shares that a back end refuses back to the scheduler.

Only if nothing was created: the driver promises it with `ShareRefused`,
and without a share server there was nothing to create the share on.
"""

import dataclasses
import logging

from manila_lite import exception
from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.services import pools
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.rows import InstanceRow
from manila_lite.db.session import Session
from manila_lite.messages import detail_in
from manila_lite.rpc.contract import work_kinds
from manila_lite.rpc.scheduler import PlacementRpc
from manila_lite.share.manager.driver_view.group_view import CloneSource
from manila_lite.share.manager.driver_view.share_view import LoadedInstance
from manila_lite.share.manager.endpoint import outdated
from manila_lite.share.manager.servers.lifecycle import ShareServersEndpoint
from manila_lite.share.manager.servers.setup import ServerSetup
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_server import ServerStatus
from manila_lite.work import table
from manila_lite.work.job import JobContext
from manila_lite.work.table import Claim

LOG = logging.getLogger(__name__)

_PLACE = work_kinds(PlacementRpc)['placement.create_share_instance']


@dataclasses.dataclass(eq=False)
class Rescheduling:
    """Hands the work of refused shares back to the scheduler."""

    setup: ServerSetup
    servers: ShareServersEndpoint

    def provide_server(
        self,
        job: JobContext,
        instance: LoadedInstance,
        snapshot: CloneSource | None = None,
    ) -> LoadedInstance | None:
        """Return the new share with its server; None if the job has ended."""
        try:
            return self.setup.provide_server(job, instance, snapshot)
        except exception.InvalidShareServer as error:
            self.reschedule(job, instance, error)
            return None

    def reschedule(
        self, job: JobContext, instance: LoadedInstance, error: Exception
    ) -> None:
        """Return the share to the scheduler, or raise the error.

        The error is raised when the allowed number of placements is reached
        and when building a share server has failed, which leaves its row.
        """
        if job.args.get('placement') is None:
            raise error
        job.hand_over(self._reschedule, job.claim, instance.row, error)
        LOG.warning(
            'Share instance %s of request %s is to be placed elsewhere, as '
            '%s refused it: %s',
            instance.row.id,
            job.request_id,
            instance.row.host,
            error,
        )

    def _reschedule(
        self, session: Session, job: Claim, row: InstanceRow, error: Exception
    ) -> None:
        placement = job.args['placement']
        table.hand_over(
            session,
            job,
            _PLACE,
            _PLACE.topic,
            {**placement, 'instance_id': row.id, 'refusal': _detail_code(error)},
        )
        # Not locked: pools come before servers, to avoid deadlocks. Only
        # this work changes a server that it builds.
        server_id = share_servers.find_server_id(session, row.id)
        server = server_id and share_servers.find(session, server_id)
        if server and server.status == ServerStatus.CREATING:
            raise error
        zones = placement['zones']
        zone = zones[0] if len(zones) == 1 else None
        if not share_instances.release_host(session, row.id, row.host, zone):
            raise outdated(
                job,
                SHARE_INSTANCE,
                row.id,
                share_instances.get(session, row.id).status,
                InstanceStatus.CREATING,
            )
        pools.adjust_allocated(session, row.host, -row.size)
        self.servers.release(session, server_id)


def _detail_code(error: Exception) -> str | None:
    """Return the code of the message detail that the error has, if any."""
    detail = detail_in(error)
    return None if detail is None else detail.value
