"""A replicated share as read for work, and as given to drivers."""

from collections.abc import Callable, Collection, Iterable
import typing

from manila_lite import exception
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.rows import ReplicaRuleRow
from manila_lite.db.session import Session
from manila_lite.messages import Detail
from manila_lite.share.drivers.base import (
    AccessRuleForDriver,
    ReplicaSnapshot,
    ShareDriver,
    ShareForDriver,
    SnapshotForDriver,
)
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    LoadedSnapshot,
    NameTemplates,
)
from manila_lite.states import snapshot_instance
from manila_lite.states.access_rule import DENIED
from manila_lite.states.share_replica import LEAVING, UP_TO_DATE, ReplicaState

Item = typing.TypeVar('Item')


class ReplicatedShare(typing.NamedTuple):
    """A share with all its replicas, read at one time.

    `rules` maps instance ids to rows; `snapshots` are all instances of
    all its snapshots, the oldest snapshot first.
    """

    share_id: str
    replicas: list[LoadedInstance]
    rules: dict[str, list[ReplicaRuleRow]]
    snapshots: list[LoadedSnapshot]

    def find_replica(self, replica_id: str) -> LoadedInstance | None:
        return next((one for one in self.replicas if one.row.id == replica_id), None)

    @property
    def active(self) -> LoadedInstance | None:
        """The active replica; of several, the oldest one that stays."""
        return self.active_among([one.row.id for one in self.replicas])

    def active_among(self, ids: Collection[str]) -> LoadedInstance | None:
        """Return the active replica among those with these ids."""
        return min(
            (
                one
                for one in self.replicas
                if one.row.replica_state == ReplicaState.ACTIVE and one.row.id in ids
            ),
            key=lambda one: (one.row.status in LEAVING, one.row.created_at, one.row.id),
            default=None,
        )

    def replicas_for_driver(self, names: NameTemplates) -> list[ShareForDriver]:
        """Return the `replica_list` argument of driver methods."""
        return [share_view.share_for_driver(one, names.share) for one in self.replicas]

    def rules_for_driver(
        self, replica_id: str, driver: ShareDriver, *, read_only: bool | None = None
    ) -> list[AccessRuleForDriver]:
        """Return the rules that are or will be in force on a replica.

        `read_only` overrides the cast to read-only of the replica.
        """
        replica = self.find_replica(replica_id)
        if replica is None:
            return []
        return [
            rule.for_driver
            for rule in share_view.rule_views(
                replica.row, self.rules.get(replica_id, ()), driver, read_only=read_only
            )
            if not rule.hidden and rule.state not in DENIED
        ]

    def snapshots_on(self, replica_id: str) -> list[LoadedSnapshot]:
        return [
            one for one in self.snapshots if one.row.share_instance_id == replica_id
        ]

    def instances_of(self, snapshot_id: str) -> list[LoadedSnapshot]:
        return [one for one in self.snapshots if one.row.snapshot_id == snapshot_id]

    def complete_snapshots(self, excluding: str | None = None) -> set[str]:
        """Return ids of snapshots available on all up-to-date replicas.

        The replica `excluding` is not considered.
        """
        by_snapshot: dict[str, list[str]] = {}
        for one in self.snapshots:
            if (
                one.row.replica_state in UP_TO_DATE
                and one.row.share_instance_id != excluding
            ):
                by_snapshot.setdefault(one.row.snapshot_id, []).append(one.row.status)
        return {
            id
            for id, statuses in by_snapshot.items()
            if snapshot_instance.aggregate_status(statuses)
            == snapshot_instance.SnapshotStatus.AVAILABLE
        }

    def snapshot_pairs(
        self, replica_id: str, names: NameTemplates
    ) -> list[ReplicaSnapshot]:
        """Return the `replica_snapshots` argument for one replica.

        One pair per complete snapshot: its instance on the active replica
        and its instance on this one.
        """
        active = self.active
        if active is None:
            return []
        complete = self.complete_snapshots(excluding=replica_id)
        on_active = {
            one.row.snapshot_id: one for one in self.snapshots_on(active.row.id)
        }
        return [
            ReplicaSnapshot(
                active_replica_snapshot=snapshot_for_driver(
                    on_active[one.row.snapshot_id], names
                ),
                share_replica_snapshot=snapshot_for_driver(one, names),
            )
            for one in self.snapshots_on(replica_id)
            if one.row.snapshot_id in complete and one.row.snapshot_id in on_active
        ]


def load_replicated_share(session: Session, share_id: str) -> ReplicatedShare:
    """Read all replicas of a share, with their rules and snapshots."""
    return load_replicated_shares(session, [share_id])[share_id]


def load_replicated_shares(
    session: Session, share_ids: Collection[str]
) -> dict[str, ReplicatedShare]:
    """Read several shares, in as many statements as for one."""
    found = replicas.list_instances(session, share_ids)
    instances = {
        one.row.id: one for one in share_view.complete_instances(session, found)
    }
    rules = replicas.list_rules(session, share_ids)
    snapshots, metadata = replicas.list_snapshots(session, share_ids)
    by_share = _grouped(instances.values(), lambda one: one.row.share_id)
    snapshots_by_share = _grouped(
        [
            LoadedSnapshot(
                row, metadata.get(row.snapshot_id, {}), instances[row.share_instance_id]
            )
            for row in snapshots
            if row.share_instance_id in instances
        ],
        lambda one: one.row.share_id,
    )
    return {
        share_id: ReplicatedShare(
            share_id,
            by_share.get(share_id, []),
            {
                one.row.id: rules.get(one.row.id, [])
                for one in by_share.get(share_id, [])
            },
            snapshots_by_share.get(share_id, []),
        )
        for share_id in share_ids
    }


def snapshot_for_driver(
    snapshot: LoadedSnapshot, names: NameTemplates
) -> SnapshotForDriver:
    return share_view.snapshot_for_driver(snapshot, names)


def _grouped(
    items: Iterable[Item], key: Callable[[Item], str]
) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {}
    for one in items:
        groups.setdefault(key(one), []).append(one)
    return groups


def require_active(share: ReplicatedShare) -> LoadedInstance:
    """Return the active replica; raises ReplicationException without one."""
    if share.active is None:
        raise exception.ReplicationException(
            reason=f'share {share.share_id} has no active replica',
            message_detail=Detail.NO_ACTIVE_REPLICA,
        )
    return share.active


def find_on(
    instances: list[LoadedSnapshot], share_instance_id: str
) -> LoadedSnapshot | None:
    """Return the instance of a snapshot on one replica, if there is one."""
    return next(
        (one for one in instances if one.row.share_instance_id == share_instance_id),
        None,
    )
