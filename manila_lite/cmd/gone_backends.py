"""Commands about back ends that are gone for good.

`work cancel`, `service remove` and `share delete-without-driver`: an
administrator declares that the work cannot be done, and its failure is recorded.
The section of the configuration may be gone with the back end, so no driver is
built.
"""

import argparse
from collections.abc import Iterable, Iterator
import contextlib
import typing

from manila_lite import exception, messages
from manila_lite.cmd import console, recovery
from manila_lite.cmd.build.backend import build_endpoints
from manila_lite.cmd.build.data import build_data_endpoints
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registry import Registry
from manila_lite.context import RequestContext
from manila_lite.db.queries.networks import allocations
from manila_lite.db.queries.servers import idle_servers
from manila_lite.db.queries.services import incarnations, services
from manila_lite.db.queries.shares import instances as share_instances, shares
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.rows import ServiceRow, ShareTarget
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.host import Host
from manila_lite.messages import Action, Detail
from manila_lite.network.base import ADMIN, USER
from manila_lite.quota import shares as share_quota, snapshots as snapshot_quota
from manila_lite.rpc.contract import endpoint_handlers
from manila_lite.rpc.data import TOPIC as DATA_TOPIC
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_TOPIC
from manila_lite.rpc.share import BINARY
from manila_lite.scheduler.manager import FiltersAndWeighers, PlacementEndpoint
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view.share_view import NameTemplates
from manila_lite.share.manager.servers.setup import ServerNetworks, ServerSetup
from manila_lite.share.operations.shares.shares import Shares
from manila_lite.states import share_instance
from manila_lite.states.access_rule import SHARE_INSTANCE_ACCESS
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE
from manila_lite.work import cancel
from manila_lite.work.execution import Executor
from manila_lite.work.runner import Runner

# Rules of a share that is removed first fail without a message.
_RESOURCES = (
    share_instance.SHARE_INSTANCE.resource,
    SNAPSHOT_INSTANCE.resource,
    SHARE_INSTANCE_ACCESS.resource,
)


@contextlib.contextmanager
def opened(args: argparse.Namespace) -> Iterator['GoneBackends']:
    """Open the database of the installation that is selected."""
    conf = console.configure(args)
    with console.database(conf, ready=True) as db:
        yield GoneBackends(Process(conf, db), f'{recovery.user()} ({console.PROG})')


class ServiceIsUp(exception.Conflict):
    message = (
        'A process of {binary} on {host} was alive less than {seconds} s ago. {advice}'
    )


class ServiceHasWork(exception.Conflict):
    message = (
        '{host} has unfinished work; see "work list". Give --cancel-work to '
        'let it fail.'
    )


class GoneBackends:
    """Ends what waits for back ends that will not come back."""

    def __init__(self, process: Process, user: str):
        self.process = process
        self.db = process.db
        self.user = user
        self.ctx = RequestContext(user_id=user, is_admin=True)

    def cancel_work(self, work_id: str) -> None:
        """Let unfinished work fail as declared."""
        row = self.db.read(cancel.find, work_id)
        self._cancel(build_canceller(self.process, row.queue), work_id)

    def remove_service(
        self, host: str, binary: str, *, cancel_work: bool = False
    ) -> int:
        """Remove a service that is down; return the number of ended work."""
        self.db.read(self._refuse_running, host, binary)
        count = 0
        if cancel_work:
            executor = build_canceller(self.process, host)
            for work_id in cancel.iterate_queue(self.db, host):
                count += self._cancel_if_found(executor, work_id)
        self.db.write(self._remove, host, binary, by=self.ctx)
        return count

    def delete_share(self, share_id: str) -> None:
        """Force-delete a share whose back ends are all gone.

        Its data, if there still is any, is not touched. For its project, a
        share in deferred deletion is gone already.
        """
        share = self.db.read(shares.get_target, share_id)
        instances = self.db.read(shares.list_instances, share_id)
        hosts = {
            row.instance_id: Host.parse(row.host).service_host
            for row in instances
            if row.host
        }
        for host in set(hosts.values()):
            self.db.read(self._refuse_gone_or_living, host)
        ids = [
            *hosts,
            *(
                row.id
                for id in hosts
                for row in self.db.read(snapshots.list_in_deferred_deletion, id)
            ),
        ]
        if share.status in share_instance.HIDDEN_FROM_TENANTS:
            self._cancel_work_on(ids)
            for id in hosts:
                self.db.write(_remove_deferred, id, by=self.ctx)
            return
        Registry(self.process).get(Shares).force_delete(self.ctx, share)
        self._cancel_work_on(ids)
        self.db.write(self._notify_owner, share, by=self.ctx)

    def _cancel_work_on(self, instance_ids: Iterable[str]) -> None:
        """Let all work on instances and their rules fail."""
        executors: dict[str, Executor] = {}
        for row in self.db.read(
            cancel.list_of_resources, _RESOURCES, list(instance_ids)
        ):
            if row.queue not in executors:
                executors[row.queue] = build_canceller(self.process, row.queue)
            self._cancel_if_found(executors[row.queue], row.id)

    def _cancel_if_found(self, executor: Executor, work_id: str) -> bool:
        """Let work fail, unless it has ended meanwhile."""
        try:
            self._cancel(executor, work_id)
        except cancel.WorkNotFound:
            return False
        return True

    def _cancel(self, executor: Executor, work_id: str) -> None:
        self.db.write(
            cancel.cancel,
            executor,
            work_id,
            cancel.WorkCancelled(user=self.user),
            by=self.ctx,
        )

    def _refuse_living(
        self, session: Session, host: str, binary: str, advice: str
    ) -> ServiceRow:
        """Return a service; raise ServiceIsUp while a process is alive."""
        row = services.get(session, host, binary)
        down_time = self.process.conf.service_down_time
        if row.now - row.heartbeat_at <= down_time:
            raise ServiceIsUp(
                binary=binary, host=host, seconds=down_time, advice=advice
            )
        return row

    def _refuse_gone_or_living(self, session: Session, host: str) -> None:
        if services.find(session, host, BINARY) is not None:
            self._refuse_living(
                session, host, BINARY, 'Force-delete the share instead.'
            )

    def _refuse_running(
        self, session: Session, host: str, binary: str, *, lock: bool = False
    ) -> ServiceRow:
        """Return a service; raise ServiceIsUp unless it was stopped or lost.

        A stopped back end has no process, so nothing has to wait for it.
        """
        row = services.get(session, host, binary, lock=lock)
        if row.health == incarnations.STOPPED:
            return row
        return self._refuse_living(session, host, binary, 'Stop it first.')

    def _remove(self, session: Session, host: str, binary: str) -> None:
        row = self._refuse_running(session, host, binary, lock=True)
        if cancel.has_work(session, host):
            raise ServiceHasWork(host=host)
        services.remove(session, row)

    def _notify_owner(self, session: Session, share: ShareTarget) -> None:
        messages.record(
            session,
            share.project_id,
            Action.DELETE,
            ('SHARE', share.id),
            self.process.conf.message_ttl,
            detail=Detail.DONE,
        )


def _remove_deferred(session: Session, instance_id: str) -> None:
    """Remove what is in deferred deletion; its quota was given back before."""
    row = share_instances.get(session, instance_id)
    if row.status == share_instance.InstanceStatus.ERROR_DEFERRED_DELETING:
        fire(session, share_instance.SHARE_INSTANCE, row.id, 'retry_deferred')
    for snapshot in snapshots.list_in_deferred_deletion(session, row.id):
        snapshot_quota.remove_uncharged(session, snapshot, 'removed')
    share_quota.remove_uncharged(session, row)
    if row.share_server_id is not None:
        idle_servers.mark(session, row.share_server_id)


class GoneDriver:
    """The driver of a back end that is gone: every use of it is refused."""

    def __init__(self, host: str):
        self._host = host

    def __getattr__(self, name: str) -> typing.Any:
        raise exception.ServiceNotUp(binary=BINARY, host=self._host)


class _Addresses:
    """Frees the addresses of share servers without a network plug-in."""

    def deallocate(self, session: Session, share_server_id: str) -> int:
        return sum(
            allocations.remove(session, share_server_id, label, None)
            for label in (USER, ADMIN)
        )


def build_canceller(process: Process, queue: str) -> Executor:
    """Build an executor for the failures of a queue; it runs no work."""
    conf, db = process.conf, process.db
    record = None
    if queue == DATA_TOPIC:
        handlers = build_data_endpoints(process).handlers()
    elif queue == SCHEDULER_TOPIC:
        placement = PlacementEndpoint(
            db,
            FiltersAndWeighers((), (), ()),
            down_time=conf.service_down_time,
            wait_for_backends=0.0,
        )
        handlers = endpoint_handlers(placement)
    else:
        driver = typing.cast(ShareDriver, GoneDriver(queue))
        names = NameTemplates(
            conf.share_name_template, conf.share_snapshot_name_template
        )
        setup = ServerSetup(
            db,
            driver,
            queue,
            names=names,
            networks=typing.cast(ServerNetworks, _Addresses()),
            message_ttl=conf.message_ttl,
        )
        endpoints = build_endpoints(process, driver, names, setup, queue)
        handlers = endpoints.handlers()
        record = endpoints.reconciliation.record_exhausted
    return Runner(
        db,
        queues=[queue],
        handlers=handlers,
        owner=f'manila-lite-manage:{process.id}',
        record=record,
        settings=process.settings(1),
        rng=process.rng,
        release=process.release.number,
    ).executor
