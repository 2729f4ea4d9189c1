"""What drivers are shown of a share that has replicas."""

from collections.abc import Collection, Iterable
import typing

from manila_lite.db.queries.replicas import replicas as rows
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import AccessRuleForDriver
from manila_lite.share.drivers.base import ReplicaSnapshot
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import ShareForDriver
from manila_lite.share.drivers.base import SnapshotForDriver
from manila_lite.share.manager.driver_view import access_view
from manila_lite.share.manager.driver_view import server_view
from manila_lite.share.manager.driver_view import share_view as driver_view
from manila_lite.share.manager.driver_view.share_view import Found
from manila_lite.share.manager.driver_view.share_view import FoundSnapshot
from manila_lite.share.manager.driver_view.share_view import Names
from manila_lite.states import snapshot_instance
from manila_lite.states.access_rule import A
from manila_lite.states.share_instance import S as ShareS
from manila_lite.states.share_replica import COUNTING
from manila_lite.states.share_replica import P

_GONE = frozenset({A.QUEUED_TO_DENY, A.DENYING})


class Replicated(typing.NamedTuple):
    """A share with all its replicas, as the work found them.

    `rules` are rows by instance id, `snapshots` all instances of all its
    snapshots, the oldest snapshot first.
    """

    share_id: str
    replicas: list[Found]
    rules: dict[str, list[typing.Any]]
    snapshots: list[FoundSnapshot]

    def get(self, replica_id: str) -> Found | None:
        return next(
            (one for one in self.replicas if one.row.id == replica_id), None
        )

    @property
    def active(self) -> Found | None:
        """The active replica; of several the oldest that stays."""
        return min(
            (
                one
                for one in self.replicas
                if one.row.replica_state == P.ACTIVE
            ),
            key=lambda one: (
                one.row.status == ShareS.DELETING,
                one.row.created_at,
                one.row.id,
            ),
            default=None,
        )

    def shown(self, names: Names) -> list[ShareForDriver]:
        """The `replica_list` of a driver."""
        return [
            driver_view.for_driver(one, names.share) for one in self.replicas
        ]

    def shown_rules(
        self,
        replica_id: str,
        driver: ShareDriver,
        *,
        read_only: bool | None = None,
    ) -> list[AccessRuleForDriver]:
        """The rules that hold, or are to hold, as the replica knows them.

        `read_only` is for one that is to know them in another way.
        """
        replica = self.get(replica_id)
        if replica is None:
            return []
        return [
            rule.shown
            for rule in access_view.rules(
                replica.row,
                self.rules.get(replica_id, ()),
                driver,
                read_only=read_only,
            )
            if not rule.hidden and rule.state not in _GONE
        ]

    def snapshots_on(self, replica_id: str) -> list[FoundSnapshot]:
        return [
            one
            for one in self.snapshots
            if one.row.share_instance_id == replica_id
        ]

    def instances_of(self, snapshot_id: str) -> list[FoundSnapshot]:
        return [
            one for one in self.snapshots if one.row.snapshot_id == snapshot_id
        ]

    def complete(self, but: str | None = None) -> set[str]:
        """Snapshots that are available on all replicas that count.

        A replica, `but`, may be left out of account.
        """
        counting: dict[str, list[str]] = {}
        for one in self.snapshots:
            if (
                one.row.replica_state in COUNTING
                and one.row.share_instance_id != but
            ):
                counting.setdefault(one.row.snapshot_id, []).append(
                    one.row.status
                )
        return {
            id
            for id, statuses in counting.items()
            if snapshot_instance.aggregate(statuses)
            == snapshot_instance.S.AVAILABLE
        }

    def pairs(self, replica_id: str, names: Names) -> list[ReplicaSnapshot]:
        """The `replica_snapshots` of a driver that is asked of a replica.

        Those of available snapshots: on the active replica, and on it.
        """
        active = self.active
        if active is None:
            return []
        complete = self.complete(but=replica_id)
        there = {
            one.row.snapshot_id: one
            for one in self.snapshots_on(active.row.id)
        }
        return [
            ReplicaSnapshot(
                active_replica_snapshot=shown(
                    there[one.row.snapshot_id], names
                ),
                share_replica_snapshot=shown(one, names),
            )
            for one in self.snapshots_on(replica_id)
            if one.row.snapshot_id in complete and one.row.snapshot_id in there
        ]


def find(session: Session, share_id: str) -> Replicated:
    """Everything about the replicas of a share; none of another."""
    return find_all(session, [share_id])[share_id]


def find_all(
    session: Session, share_ids: Collection[str]
) -> dict[str, Replicated]:
    """The same of many shares, in as many statements as of one."""
    found = rows.instances_of(session, share_ids)
    servers = server_view.find_all(
        session,
        {row.share_server_id for row, _, _ in found if row.share_server_id},
    )
    instances = {
        row.id: Found(row, metadata, exports, servers.get(row.share_server_id))
        for row, metadata, exports in found
    }
    rules = rows.rules_of(session, share_ids)
    snapshots, metadata = rows.snapshots_of(session, share_ids)
    of_share = _grouped(instances.values(), lambda one: one.row.share_id)
    taken = _grouped(
        [
            FoundSnapshot(
                row,
                metadata.get(row.snapshot_id, {}),
                instances[row.share_instance_id],
            )
            for row in snapshots
            if row.share_instance_id in instances
        ],
        lambda one: one.row.share_id,
    )
    return {
        share_id: Replicated(
            share_id,
            of_share.get(share_id, []),
            {
                one.row.id: rules.get(one.row.id, [])
                for one in of_share.get(share_id, [])
            },
            taken.get(share_id, []),
        )
        for share_id in share_ids
    }


def shown(snapshot: FoundSnapshot, names: Names) -> SnapshotForDriver:
    return driver_view.snapshot_for_driver(snapshot, names)


def _grouped(
    found: Iterable[typing.Any], key: typing.Callable[[typing.Any], str]
) -> dict[str, list[typing.Any]]:
    groups: dict[str, list[typing.Any]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups
