"""Calls about replicas to slow drivers, and rules that are sent again."""

from collections.abc import Iterable, Mapping
import dataclasses
import threading
import time
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.rows import InstanceRow, ReplicaRow
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import AccessRpc, SnapshotAccessRpc
from manila_lite.share.drivers import base
from manila_lite.share.manager.driver_probe import DriverProbe
from manila_lite.share.manager.replication.outcomes import DriverReply
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_replica import ReplicaState


class ReplicaProbePending(exception.ManilaLiteError):
    """The driver has not returned from a call about the replica.

    `overdue` is set when a previous caller has waited for the reply and
    the time limit has passed.
    """

    message = 'The driver has not replied about replica {replica_id}.'

    @property
    def overdue(self) -> bool:
        return bool(self.params['overdue'])


class ProbeSubject(typing.NamedTuple):
    """What a call is about: an aspect of a replica in one generation.

    `what` is 'state', 'status', or the id of a snapshot on it.
    """

    replica_id: str
    generation: int
    what: str


class _Call:
    """A call to the driver, and its reply when it has returned."""

    def __init__(self, subject: ProbeSubject):
        self.subject = subject
        self.started_at = time.monotonic()
        self.reply: DriverReply | None = None

    def __repr__(self) -> str:
        return f'<the {self.subject.what} of {self.subject.replica_id}>'

    def run(self, method: typing.Callable, args: tuple) -> None:
        try:
            self.reply = DriverReply(method(*args))
        except Exception as error:  # noqa: BLE001 outcomes.py interprets it
            self.reply = DriverReply(error=error)


class ReplicaProbe:
    """Makes one driver call at a time about each replica.

    While a call has not returned, no other is made about the same
    replica, so that a replica on which the driver hangs costs one thread.
    A late reply is returned to the next caller with the same subject.
    """

    def __init__(self, probe: DriverProbe):
        self.probe = probe
        self._calls: dict[str, _Call] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        subject: ProbeSubject,
        method: typing.Callable,
        *args: object,
        on_slow: typing.Callable[[], object] | None = None,
    ) -> DriverReply:
        """Return the driver's reply; `on_slow` is called when it is slow.

        Raises ReplicaProbePending or BackendUnresponsive.
        """
        call, late_reply = self._begin(subject)
        if late_reply is not None:
            return late_reply
        try:
            result = self.probe.ask(call.run, method, args, on_slow=on_slow)
        except BaseException:
            self._forget(call)
            raise
        if call.reply is None or result.reason:
            raise ReplicaProbePending(replica_id=subject.replica_id, overdue=False)
        self._forget(call)
        if isinstance(call.reply.error, exception.ClaimLost):
            raise call.reply.error  # says nothing about the replica
        return call.reply

    def _begin(self, subject: ProbeSubject) -> tuple[_Call, DriverReply | None]:
        """Return a new call, or the late reply to the same call before."""
        with self._lock:
            before = self._calls.get(subject.replica_id)
            if before is not None and before.reply is None:
                raise ReplicaProbePending(
                    replica_id=subject.replica_id,
                    overdue=time.monotonic() >= before.started_at + self.probe.timeout,
                )
            call = self._calls[subject.replica_id] = _Call(subject)
            if (
                before is not None
                and before.subject == subject
                and before.reply is not None
                and not isinstance(before.reply.error, exception.ClaimLost)
            ):
                del self._calls[subject.replica_id]
                return call, before.reply
            return call, None

    def _forget(self, call: _Call) -> None:
        with self._lock:
            if self._calls.get(call.subject.replica_id) is call:
                del self._calls[call.subject.replica_id]


def with_normalised_exports(method: typing.Callable) -> typing.Callable:
    """Wrap a driver method so that invalid exports raise as its error."""

    def call(*args: object, **kwargs: object) -> typing.Any:
        reply = method(*args, **kwargs)
        if isinstance(reply, Mapping):
            return {
                **reply,
                'export_locations': base.normalise_export_locations(
                    reply.get('export_locations')
                ),
            }
        return reply

    return call


def with_server(
    method: typing.Callable, server: base.ShareServerForDriver | None
) -> typing.Callable:
    """Wrap a driver method so that it gets the server of the replica."""
    return lambda *args: method(*args, share_server=server)


# The published example of a driver uses the second value.
_IN_FORCE = (RulesStatus.ACTIVE, ReplicaState.IN_SYNC)


@dataclasses.dataclass(eq=False)
class RuleResync:
    """Submits the work that resyncs access rules of replicas."""

    sync_client: Client[AccessRpc]
    snapshot_client: Client[SnapshotAccessRpc]

    def submit(
        self,
        session: Session,
        ctx: RequestContext,
        replicas: Iterable[ReplicaRow | InstanceRow],
    ) -> None:
        """Submit the work; `mark_for_resync` follows in the transaction."""
        for row in sorted(replicas, key=lambda row: row.id):
            if row.host:
                self.sync_client.on(row.host).sync_access(
                    session, ctx, instance_id=row.id
                )

    def resync_snapshots(
        self,
        session: Session,
        ctx: RequestContext,
        replicas: Iterable[ReplicaRow | InstanceRow],
    ) -> None:
        """Submit the work that resyncs all snapshots on the replicas."""
        hosts = {row.id: row.host for row in replicas if row.host}
        # Same lock order as in requests: the work, then the instance.
        for id, replica_id in snapshot_rules.list_with_rules_on(session, hosts).items():
            self.snapshot_client.on(hosts[replica_id]).sync_snapshot_access(
                session, ctx, snapshot_instance_id=id
            )
        snapshot_rules.mark_stale_on_share_instances(session, hosts)


def rules_in_force(reply: base.ReplicaReply | None) -> bool:
    """Return whether a driver reports the rules it was given as in force."""
    return reply is not None and (reply.get('access_rules_status') in _IN_FORCE)
