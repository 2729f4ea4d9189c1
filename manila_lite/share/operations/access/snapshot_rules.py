"""Accept requests about the access rules of snapshots.

A transaction locks the work first, then the instances, then their rules. The
share manager uses the same order, so the two cannot deadlock.
"""

from collections.abc import Sequence
import dataclasses

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.access import snapshot_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import fire_matching, insert_rows
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import SnapshotAccessRpc
from manila_lite.share.operations.access import targets as access_targets
from manila_lite.share.operations.replication.snapshots import status_determining
from manila_lite.states.access_rule import SNAPSHOT_ACCESS_RULE
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work.admission import AdmissionControl, admission_controlled


@dataclasses.dataclass(eq=False)
class SnapshotAccess:
    """Operations on snapshot access. Each method is one transaction."""

    db: Database
    work: Client[SnapshotAccessRpc]
    admission: AdmissionControl

    @admission_controlled
    @transaction
    def allow(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: rows.SnapshotTarget,
        access_type: str,
        access_to: str,
        *,
        ipv6: bool = True,
    ) -> snapshot_rules.SnapshotAccessRuleView:
        """Accept a rule that lets a client mount the snapshot; return it.

        `ipv6` says whether the API version of the request has it.
        """
        instances = self._begin(session, ctx, snapshot)
        target = access_targets.normalise(
            access_type, access_to, ipv6=ipv6, cephx=False
        )
        access_to = access_targets.stored(access_type, access_to, target)
        access_id = session.new_id()
        snapshot_rules.insert(
            session,
            id=access_id,
            share_snapshot_id=snapshot.id,
            access_type=access_type,
            access_to=access_to,
            target=target,
            created_at=session.now,
        )
        insert_rows(
            session,
            SNAPSHOT_ACCESS_RULE,
            'allow',
            [
                {
                    'id': session.new_id(),
                    'access_id': access_id,
                    'share_snapshot_instance_id': row.id,
                    'created_at': session.now,
                }
                for row in instances
                # No back end is left to come for a replica without a host.
                if row.host or row.status == SnapshotStatus.CREATING
            ],
        )
        return snapshot_rules.SnapshotAccessRuleView(
            access_id, access_type, access_to, SNAPSHOT_ACCESS_RULE.initial['allow']
        )

    @transaction
    def deny(
        self,
        session: Session,
        ctx: RequestContext,
        snapshot: rows.SnapshotTarget,
        access_id: str,
    ) -> None:
        """Request the removal of a rule; repeating it is harmless."""
        self._begin(session, ctx, snapshot)
        snapshot_rules.check_exists(session, snapshot.id, access_id)
        fire_matching(
            session, SNAPSHOT_ACCESS_RULE, 'deny', {'access_id': access_id}, touch=True
        )

    def _begin(
        self, session: Session, ctx: RequestContext, snapshot: rows.SnapshotTarget
    ) -> Sequence[rows.MountableInstanceRow]:
        """Submit the work, lock the instances and check them."""
        if snapshot.host:
            self._submit(session, ctx, snapshot.instance_id, snapshot.host)
        if snapshot.replica_state is not None:
            # A new replica gets the rules that exist when it is created.
            replicas.lock_instances(session, snapshot.share_id)
        instances = snapshot_rules.lock_instances_shared(session, snapshot.id)
        if not instances:
            raise exception.ShareSnapshotNotFound(snapshot_id=snapshot.id)
        _check(snapshot, instances)
        for row in instances:
            if (
                row.id != snapshot.instance_id
                and row.host
                and row.status == SnapshotStatus.AVAILABLE
            ):
                self._submit(session, ctx, row.id, row.host)
        return instances

    def _submit(
        self, session: Session, ctx: RequestContext, instance_id: str, host: str
    ) -> None:
        self.work.on(host).sync_snapshot_access(
            session, ctx, snapshot_instance_id=instance_id
        )


def _check(
    snapshot: rows.SnapshotTarget, instances: Sequence[rows.MountableInstanceRow]
) -> None:
    """Refuse the change if one instance cannot take it.

    Instances on out-of-sync replicas get the change when they are created.
    Errors do not name instances, which users cannot see.
    """
    share = instances[0]
    if not share.mount_snapshot_support:
        raise exception.SnapshotNotMountable(share_id=share.share_id)
    if share.snapshot_inherit_share_access_support:
        raise exception.InvalidShareSnapshot(
            reason=f'snapshots of share {share.share_id} have the access '
            'rules of the share'
        )
    for row in status_determining(instances):
        if row.status != SnapshotStatus.AVAILABLE:
            raise exception.InvalidShareSnapshot(
                reason=f'access rules of snapshot {snapshot.id} cannot be '
                f'changed while it is {row.status}'
            )
