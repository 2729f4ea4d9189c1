"""Rescue of snapshot instances."""

import dataclasses
import typing

from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.snapshots import snapshots as rows
from manila_lite.db.rows import SnapshotInstanceRow
from manila_lite.db.session import Session
from manila_lite.messages import Action
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import LoadedSnapshot
from manila_lite.share.manager.recovery import base
from manila_lite.share.manager.snapshots import SnapshotsEndpoint
from manila_lite.states.snapshot_instance import SNAPSHOT_INSTANCE, SnapshotStatus

_REPLICATED_KINDS = {
    'snapshots.delete_snapshot_instance': (
        'replicated_snapshots.delete_replicated_snapshot'
    ),
    'snapshots.delete_snapshot_instance_deferred': (
        'replicated_snapshots.delete_replicated_snapshot_deferred'
    ),
}


SnapshotCase = base.RescueCase[SnapshotInstanceRow, LoadedSnapshot]

_ACTIONS = {
    SnapshotStatus.CREATING: Action.CREATE,
    SnapshotStatus.DELETING: Action.DELETE,
    SnapshotStatus.DEFERRED_DELETING: Action.DELETE,
}


@dataclasses.dataclass(eq=False)
class SnapshotInstanceRecovery(
    base.ProbedRecovery[SnapshotInstanceRow, LoadedSnapshot]
):
    machine = SNAPSHOT_INSTANCE

    snapshots: SnapshotsEndpoint

    def find(self, session: Session, id: str) -> SnapshotCase | None:
        if rows.find(session, id) is None:
            return None
        loaded = share_view.load_snapshot(session, id)
        return base.RescueCase(loaded.row, loaded)

    def driver_call(self, case: SnapshotCase, name: str) -> base.DriverCall:
        return (
            getattr(self.snapshots.driver, name),
            self.snapshots.view(case.loaded),
            case.loaded.share_server,
        )

    def interpret(self, case: SnapshotCase, reply: typing.Any) -> base.Verdict:
        """Return the reply itself if it is consistent with the row."""
        share = case.loaded.share.row
        try:
            status, size = reply['status'], reply.get('size')
            proto = reply.get('share_proto', share.share_proto)
            normalise_export_locations(reply.get('export_locations'))
        except (TypeError, KeyError, AttributeError) as error:
            return base.Verdict(reason=f'the reply of the driver is invalid: {error!r}')
        if status != SnapshotStatus.AVAILABLE:
            return base.Verdict(reason=f'the back end reports status {status}')
        if proto != share.share_proto:
            return base.Verdict(reason=f'the back end reports protocol {proto}')
        if not isinstance(size, int | None):
            return base.Verdict(reason=f'the back end reports a size of {size} GiB')
        return base.Verdict(reply)

    def resubmit(self, session: Session, case: SnapshotCase, kind: str) -> None:
        """Resubmit, as replication work when there are several replicas."""
        if (
            case.row.replica_state is not None
            and replicas.count(session, case.row.share_id) > 1
        ):
            kind = _REPLICATED_KINDS[kind]
        super().resubmit(session, case, kind)

    def converge(self, session: Session, case: SnapshotCase, end: base.Ending) -> None:
        self.snapshots.created(session, case.row, end.facts)

    def give_up(self, session: Session, case: SnapshotCase, end: base.Ending) -> None:
        self.snapshots.given_up(session, case.row, end.event)
        self.notify(session, end, _ACTIONS.get(case.row.status, Action.UPDATE))
