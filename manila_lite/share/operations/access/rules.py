"""Accept requests about the access rules of shares and of snapshots.

A transaction locks the work first, then the instances, then their rules. The
share manager uses the same order, so the two cannot deadlock.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import datetime
import functools
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db import rows
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.session import Database, Session, transaction
from manila_lite.db.transitions import (
    TransitionBatch,
    fire_all,
    fire_matching,
    insert_rows,
)
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import AccessRpc, SnapshotAccessRpc
from manila_lite.share.operations.access import (
    locks as resource_locks,
    targets as access_targets,
)
from manila_lite.share.operations.replication.snapshots import status_determining
from manila_lite.states.access_rule import (
    ACCESS_RULE,
    DENIED,
    RULES_EDITABLE,
    SHARE_INSTANCE_ACCESS,
    SNAPSHOT_ACCESS_RULE,
    RulesStatus,
)
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_network import NetworkStatus
from manila_lite.states.share_replica import PASSIVE
from manila_lite.states.snapshot_instance import SnapshotStatus
from manila_lite.work.admission import AdmissionControl, admission_controlled


class NewAccessRule(typing.NamedTuple):
    """A rule just created, complete for the response.

    `access_rules_status` is that of the share.
    """

    id: str
    share_id: str
    access_type: str
    access_to: str
    access_level: str
    state: str
    access_rules_status: str
    access_key: str | None
    metadata: Mapping[str, str]
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class MarkedInstance(typing.NamedTuple):
    """An instance that may take the change, and is marked already."""

    id: str
    access_rules_status: str = RulesStatus.OUT_OF_SYNC


class RuleLockOptions(typing.NamedTuple):
    """The locks that a new rule is created with."""

    visibility: bool = False
    deletion: bool = False
    reason: str | None = None


def _serialised(method: Callable) -> Callable:
    """Serialise requests about one share, so that they need no retries."""

    @functools.wraps(method)
    def run(
        self: 'Access',
        ctx: RequestContext,
        share: typing.Any,
        *args: typing.Any,
        **kwargs: typing.Any,
    ) -> typing.Any:
        name = f'access-{share.instance_id}'
        with self.locks.lock(name, can_refuse=True):
            return method(self, ctx, share, *args, **kwargs)

    return run


@dataclasses.dataclass(eq=False)
class Access:
    """Operations on access rules. Each method is one transaction.

    `allow_in_error` says whether instances in error accept changes.
    """

    db: Database
    access: Client[AccessRpc]
    admission: AdmissionControl
    locks: Coordinator | NullCoordinator

    @admission_controlled
    @_serialised
    @transaction
    def allow(
        self,
        session: Session,
        ctx: RequestContext,
        share: typing.Any,
        *,
        access_type: str,
        access_to: str,
        target: str,
        access_level: str = 'rw',
        metadata: Mapping[str, str] | None = None,
        locked: RuleLockOptions | None = None,
        allow_in_error: bool = True,
        allow_rules_in_error: bool = True,
    ) -> NewAccessRule:
        """Accept a rule for a client that has none of that type yet.

        `target` is `access_to` in the form of `targets.normalise`.
        """
        moves = TransitionBatch(session)
        instances = self._begin(session, ctx, share, moves, allow_in_error)
        if not allow_rules_in_error and any(
            row.access_rules_status == RulesStatus.ERROR for row in instances
        ):
            raise exception.InvalidShareAccess(
                reason='rules of the share are in error; deny them first'
            )
        rule = {
            'id': session.new_id(),
            'share_id': share.id,
            'access_type': access_type,
            'access_to': access_targets.stored(access_type, access_to, target),
            'access_level': access_level,
            'created_at': session.now,
        }
        share_rules.insert(session, {**rule, 'target': target}, metadata or {})
        moves.insert_rows(
            ACCESS_RULE,
            'allow',
            [
                {
                    'id': session.new_id(),
                    'share_instance_id': row.id,
                    'access_id': rule['id'],
                    'created_at': session.now,
                }
                for row in instances
            ],
        )
        status = self._mark_changing(moves, instances)
        if locked is not None:
            resource_locks.lock_rule(
                session, ctx, rule['id'], share.id, **locked._asdict()
            )
        return NewAccessRule(
            **rule,
            state=ACCESS_RULE.initial['allow'],
            access_rules_status=status,
            access_key=None,
            metadata=dict(metadata or {}),
            updated_at=None,
        )

    @_serialised
    @transaction
    def deny(
        self,
        session: Session,
        ctx: RequestContext,
        share: typing.Any,
        access_id: str,
        *,
        unrestrict: bool = False,
        allow_in_error: bool = True,
    ) -> None:
        """Request the removal of a rule; repeating it is harmless.

        With `unrestrict`, locks that the caller may remove are removed.
        """
        moves = TransitionBatch(session)
        instances = self._begin(session, ctx, share, moves, allow_in_error)
        instance_ids = {row.id for row in instances}
        rules = share_rules.list_mappings(session, share.id, access_id)
        moves.fire(
            ACCESS_RULE,
            'deny',
            {
                row.id: row.state
                for row in rules
                if row.share_instance_id in instance_ids
            },
        )
        # Mappings of instances without a host have no back end to ask.
        fire_all(
            session,
            ACCESS_RULE,
            [row.id for row in rules if row.share_instance_id not in instance_ids],
            'removed',
        )
        self._mark_changing(moves, instances)
        resource_locks.unlock_rule(session, ctx, access_id, unrestrict=unrestrict)

    @admission_controlled
    @_serialised
    @transaction
    def change_level(
        self,
        session: Session,
        ctx: RequestContext,
        share: typing.Any,
        access_id: str,
        level: str,
        *,
        allow_in_error: bool = True,
    ) -> None:
        """Change the level of a rule; does nothing if it has that level."""
        if (
            share_rules.list_mappings(session, share.id, access_id)[0].access_level
            == level
        ):
            return
        moves = TransitionBatch(session)
        instances = self._begin(session, ctx, share, moves, allow_in_error)
        rules = share_rules.list_mappings(session, share.id, access_id)
        if any(row.state in DENIED for row in rules):
            raise exception.InvalidShareAccess(
                reason=f'rule {access_id} is being denied'
            )
        share_rules.set_level(session, access_id, level)
        # Rules that are still queued are applied with the new level.
        instance_ids = {row.id for row in instances}
        moves.fire(
            ACCESS_RULE,
            'change',
            {
                row.id: row.state
                for row in rules
                if row.share_instance_id in instance_ids
            },
        )
        self._mark_changing(moves, instances)

    def _begin(
        self,
        session: Session,
        ctx: RequestContext,
        share: rows.ShareTarget,
        moves: TransitionBatch,
        allow_in_error: bool,
    ) -> Sequence[rows.RuleInstanceRow | MarkedInstance]:
        """Submit the work, lock the instances and check them.

        A replica that could not be placed gets no rules. If the share is as
        most are, the move that marks its rules as changing does both.
        """
        if share.is_soft_deleted:
            raise exception.ShareSoftDeleted(share_id=share.id)
        instance_hosts = (
            {share.instance_id: share.host}
            if share.replica_state is None
            else {
                row.id: row.host
                for row in share_rules.list_instance_hosts(session, share.id)
            }
        )
        for id, host in instance_hosts.items():
            if host:
                self._submit(session, ctx, id, host)
        if self._mark_at_once(moves, share):
            return [MarkedInstance(share.instance_id)]
        if share.replica_state is not None:
            # A replica may have been added since the hosts were read.
            replicas.lock_instances(session, share.id)
        instances = share_rules.lock_instances(session, share.id)
        if not instances:
            raise exception.ShareNotFound(share_id=share.id)
        if allow_in_error:
            instances = [row for row in instances if not _is_unplaced(row)]
        _check(instances, allow_in_error)
        submitted = {id for id, host in instance_hosts.items() if host}
        for row in instances:
            if row.id not in submitted:  # added since the hosts were read
                self._submit(session, ctx, row.id, row.host)
        return instances

    def _submit(
        self, session: Session, ctx: RequestContext, instance_id: str, host: str
    ) -> None:
        self.access.on(host).sync_access(session, ctx, instance_id=instance_id)

    def _mark_at_once(self, moves: TransitionBatch, share: rows.ShareTarget) -> bool:
        """Mark the rules of the only instance as changing, if that is all it takes.

        What was read only says whether to try: the guard proves it.
        """
        if share.host is None or share.access_rules_status != RulesStatus.ACTIVE:
            return False
        return moves.fire_unless(
            SHARE_INSTANCE_ACCESS,
            share.instance_id,
            'change',
            share_rules.NOT_SIMPLY_EDITABLE,
        )

    def _mark_changing(
        self,
        moves: TransitionBatch,
        instances: Sequence[rows.RuleInstanceRow | MarkedInstance],
    ) -> str:
        """Mark the rules as changing; return the share's rules status."""
        moves.fire(
            SHARE_INSTANCE_ACCESS,
            'change',
            {row.id: row.access_rules_status for row in instances},
        )
        moves.write()
        return (
            RulesStatus.ERROR
            if any(row.access_rules_status == RulesStatus.ERROR for row in instances)
            else RulesStatus.OUT_OF_SYNC
        )


_MIGRATING = frozenset(
    {
        InstanceStatus.MIGRATING,
        InstanceStatus.MIGRATING_TO,
        InstanceStatus.SERVER_MIGRATING,
    }
)


def _is_unplaced(row: rows.RuleInstanceRow) -> bool:
    """Return whether it is a replica that could not be placed."""
    return (
        row.host is None
        and row.status == InstanceStatus.ERROR
        and row.replica_state in PASSIVE
    )


def _check(instances: Sequence[rows.RuleInstanceRow], allow_in_error: bool) -> None:
    """Refuse the change if one instance cannot take it.

    Errors do not name instances, which users cannot see.
    """
    allowed = (
        RULES_EDITABLE if allow_in_error else RULES_EDITABLE - {InstanceStatus.ERROR}
    )
    if any(row.status in _MIGRATING for row in instances):
        raise exception.InvalidShare(
            reason='access rules cannot be changed while the share is being migrated'
        )
    if any(row.host is None or row.status not in allowed for row in instances):
        raise exception.InvalidShare(
            reason='access rules cannot be changed while the share or one '
            'of its replicas is not placed yet, is busy, or is in a '
            'status that does not allow it'
        )
    if any(row.network_status not in (None, NetworkStatus.ACTIVE) for row in instances):
        raise exception.InvalidShareNetwork(
            reason='access rules cannot be changed while the share network '
            'is not active'
        )


@dataclasses.dataclass(eq=False)
class SnapshotAccess:
    """Operations on snapshot access. Each method is one transaction."""

    db: Database
    access: Client[SnapshotAccessRpc]
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
        fire_matching(session, SNAPSHOT_ACCESS_RULE, 'deny', {'access_id': access_id})

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
        _check_snapshot(snapshot, instances)
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
        self.access.on(host).sync_snapshot_access(
            session, ctx, snapshot_instance_id=instance_id
        )


def _check_snapshot(
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
