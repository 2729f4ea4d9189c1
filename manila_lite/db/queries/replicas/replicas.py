"""Replicas of a share: the rows that requests and work decide on."""

from collections.abc import Collection
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import access
from manila_lite.db.models import shares
from manila_lite.db.models import snapshots
from manila_lite.db.queries.metadata import MetadataTable
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.db.transitions import fire_matching
from manila_lite.states import access_rule
from manila_lite.states import snapshot_instance
from manila_lite.states.share_replica import PROMOTABLE
from manila_lite.states.share_replica import READABLE
from manila_lite.states.share_replica import SHARE_REPLICA
from manila_lite.states.share_replica import ReplicaState

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
RULE = access.AccessRule.__table__
MAPPING = access.InstanceAccessRule.__table__
SNAPSHOT = snapshots.Snapshot.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__
SNAPSHOT_METADATA = snapshots.SnapshotMetadata.__table__
METADATA = MetadataTable(
    shares.ShareInstanceMetadata.__table__, 'share_instance_id', INSTANCE
)

_TARGET = (
    sa.select(
        INSTANCE.c.id,
        INSTANCE.c.share_id,
        INSTANCE.c.host,
        INSTANCE.c.status,
        INSTANCE.c.replica_state,
        SHARE.c.project_id,
        SHARE.c.user_id,
        SHARE.c.replication_type,
    )
    .select_from(INSTANCE.join(SHARE))
    .where(
        INSTANCE.c.id == sa.bindparam('replica_id'),
        INSTANCE.c.replica_state.is_not(None),
    )
)
_TAKE = (
    sa.select(
        INSTANCE.c.id,
        INSTANCE.c.share_id,
        INSTANCE.c.host,
        INSTANCE.c.status,
        INSTANCE.c.replica_state,
        INSTANCE.c.replica_generation,
        INSTANCE.c.access_rules_status,
        INSTANCE.c.cast_rules_to_readonly,
        INSTANCE.c.share_type_id,
        INSTANCE.c.share_network_id,
        INSTANCE.c.share_server_id,
        INSTANCE.c.availability_zone_id,
        INSTANCE.c.created_at,
    )
    .where(INSTANCE.c.share_id == sa.bindparam('of_share'))
    .order_by(INSTANCE.c.id)
    .with_for_update()
)
_COUNT = (
    sa.select(sa.func.count())
    .select_from(INSTANCE)
    .where(
        INSTANCE.c.share_id == sa.bindparam('of_share'),
        INSTANCE.c.replica_state.is_not(None),
    )
)
_HOSTS = (
    sa.select(INSTANCE.c.host, INSTANCE.c.replica_state)
    .where(
        INSTANCE.c.share_id == sa.bindparam('of_share'),
        INSTANCE.c.host.is_not(None),
    )
    .order_by(INSTANCE.c.created_at, INSTANCE.c.id)
)
_NEXT_ROUND = (
    sa.update(INSTANCE)
    .where(INSTANCE.c.share_id == sa.bindparam('of_share'))
    .values(replica_generation=INSTANCE.c.replica_generation + 1)
)
_OF_SHARES: sa.BindParameter[typing.Any] = sa.bindparam(
    'share_ids', expanding=True
)
_INSTANCES_OF = sa.select(INSTANCE.c.id).where(
    INSTANCE.c.share_id.in_(_OF_SHARES), INSTANCE.c.replica_state.is_not(None)
)
_RULES_OF = (
    sa.select(
        RULE.c.id,
        RULE.c.share_id,
        RULE.c.access_type,
        RULE.c.access_to,
        RULE.c.access_level,
        MAPPING.c.id.label('mapping_id'),
        MAPPING.c.state,
        MAPPING.c.access_key,
        MAPPING.c.share_instance_id,
    )
    .select_from(MAPPING.join(RULE))
    .where(RULE.c.share_id.in_(_OF_SHARES))
    .order_by(RULE.c.created_at, RULE.c.id)
)
_SNAPSHOTS_OF = (
    sa.select(
        SNAPSHOT_INSTANCE,
        SNAPSHOT.c.project_id,
        SNAPSHOT.c.user_id,
        SNAPSHOT.c.share_id,
        SNAPSHOT.c.size,
        SNAPSHOT.c.share_size,
        INSTANCE.c.replica_state,
        INSTANCE.c.host,
        INSTANCE.c.share_type_id,
        SHARE.c.mount_snapshot_support,
    )
    .select_from(
        SNAPSHOT_INSTANCE.join(SNAPSHOT)
        .join(INSTANCE, INSTANCE.c.id == SNAPSHOT_INSTANCE.c.share_instance_id)
        .join(SHARE, SHARE.c.id == SNAPSHOT.c.share_id)
    )
    .where(SNAPSHOT.c.share_id.in_(_OF_SHARES))
    .order_by(SNAPSHOT.c.created_at, SNAPSHOT.c.id, SNAPSHOT_INSTANCE.c.id)
)
_SNAPSHOT_METADATA_OF = (
    sa.select(SNAPSHOT_METADATA)
    .join(SNAPSHOT, SNAPSHOT.c.id == SNAPSHOT_METADATA.c.share_snapshot_id)
    .where(SNAPSHOT.c.share_id.in_(_OF_SHARES))
)


def get_target(session: Session, replica_id: str) -> sa.Row:
    """What an action needs to authorise and check, in one statement.

    Raises ShareReplicaNotFound, also for instances that are no replicas.
    """
    row = session.one(_TARGET, replica_id=replica_id)
    if row is None:
        raise exception.ShareReplicaNotFound(replica_id=replica_id)
    return row


def lock_instances(session: Session, share_id: str) -> typing.Sequence[sa.Row]:
    """All instances of a share, which stay as they are until the end.

    Whoever decides on one replica by what the others are takes them all
    first, in this one order. Who adds one has taken the others, too.
    """
    found = session.rows(_TAKE, of_share=share_id)
    if session.dialect == 'sqlite':
        return found
    # A statement that has waited does not see what was added meanwhile,
    # the next one does; and from now on nobody adds any.
    return session.rows(_TAKE, of_share=share_id)


def count(session: Session, share_id: str) -> int:
    """How many replicas a share has, the active ones included."""
    return session.value(_COUNT, of_share=share_id)


def get_hosts(
    session: Session, share_id: str
) -> tuple[str | None, frozenset[str]]:
    """Where the active replica is, if anywhere, and where there are any."""
    rows = session.rows(_HOSTS, of_share=share_id)
    return (
        next(
            (
                row.host
                for row in rows
                if row.replica_state == ReplicaState.ACTIVE
            ),
            None,
        ),
        frozenset(row.host for row in rows),
    )


def advance_generation(session: Session, share_id: str) -> None:
    """Have answers about the replicas that are yet to come not count.

    Drivers were asked while another replica was active, or while the
    active one had other data. A round is read with the replica and
    matched when what the driver said is written down.
    """
    session.run(_NEXT_ROUND, of_share=share_id)


def mark_all_out_of_sync(session: Session, share_id: str) -> None:
    """Have no replica be taken for up to date, whoever was asked before.

    The active one has other data, or is about to.
    """
    fire_matching(
        session,
        SHARE_REPLICA,
        'fell_behind',
        {'share_id': share_id, 'replica_state': ReplicaState.IN_SYNC},
        updated_at=session.now,
    )
    advance_generation(session, share_id)


def initial_columns(
    share_id: str, replication_type: str | None
) -> dict[str, object]:
    """What the first instance of a share is born with."""
    if replication_type is None:
        return {}
    return {
        'replica_state': SHARE_REPLICA.initial['create'],
        'sole_active_of': _sole(share_id, replication_type),
    }


def activate(
    session: Session,
    replica: typing.Any,
    replication_type: str,
    event: str = 'activated',
) -> None:
    """Have a replica be active, with rules as users gave them.

    Where there can be but one, the one before has to be retired first:
    the unique key of `sole_active_of` refuses a second one.
    """
    fire(
        session,
        SHARE_REPLICA,
        replica.id,
        event,
        sole_active_of=_sole(replica.share_id, replication_type),
        cast_rules_to_readonly=False,
        updated_at=session.now,
    )


def retire(
    session: Session,
    replica: typing.Any,
    replication_type: str,
    event: str = 'retired',
) -> None:
    """Have an active replica be one that only follows."""
    fire(
        session,
        SHARE_REPLICA,
        replica.id,
        event,
        sole_active_of=None,
        cast_rules_to_readonly=replication_type == READABLE,
        updated_at=session.now,
    )


def mark_failed(session: Session, replica_id: str) -> None:
    """A replica that was not created has nothing, and says so.

    None of its rules is in force. Its status is the caller's to set.
    """
    fire_matching(
        session,
        SHARE_REPLICA,
        'failed',
        {'id': replica_id},
        updated_at=session.now,
    )
    rules = {'share_instance_id': replica_id}
    fire_matching(session, access_rule.ACCESS_RULE, 'apply', rules)
    if fire_matching(
        session,
        access_rule.ACCESS_RULE,
        'apply_failed',
        rules,
        updated_at=session.now,
    ):
        fire_matching(
            session,
            access_rule.SHARE_INSTANCE_ACCESS,
            'failed',
            {'id': replica_id},
        )


def mark_unplaced_failed(session: Session, replica_id: str) -> None:
    """The same of one that is on no back end, which none will look at."""
    mark_failed(session, replica_id)
    fire_matching(
        session,
        snapshot_instance.SNAPSHOT_INSTANCE,
        'create_failed',
        {'share_instance_id': replica_id},
        updated_at=session.now,
    )


def _sole(share_id: str, replication_type: str) -> str | None:
    return share_id if replication_type in PROMOTABLE else None


# What drivers are shown, of many shares at once


def list_instances(
    session: Session, share_ids: Collection[str]
) -> list[tuple[sa.Row, dict[str, str], list[sa.Row]]]:
    """All replicas of the shares, as `share_instances.some` has them."""
    ids = [
        row.id
        for row in session.rows(_INSTANCES_OF, share_ids=sorted(share_ids))
    ]
    return share_instances.list_with_details(session, ids)


def list_rules(
    session: Session, share_ids: Collection[str]
) -> dict[str, list[sa.Row]]:
    """The rules of the shares by instance, as `access.of_instance`."""
    found: dict[str, list[sa.Row]] = {}
    for row in session.rows(_RULES_OF, share_ids=sorted(share_ids)):
        found.setdefault(row.share_instance_id, []).append(row)
    return found


def list_snapshots(
    session: Session, share_ids: Collection[str]
) -> tuple[typing.Sequence[sa.Row], dict[str, dict]]:
    """All snapshot instances of the shares, the oldest snapshot first.

    And the metadata by snapshot. Each row has the `replica_state` of what
    it was taken of.
    """
    wanted = sorted(share_ids)
    metadata: dict[str, dict[str, str]] = {}
    rows = session.rows(_SNAPSHOTS_OF, share_ids=wanted)
    if rows:
        for one in session.rows(_SNAPSHOT_METADATA_OF, share_ids=wanted):
            metadata.setdefault(one.share_snapshot_id, {})[one.key] = one.value
    return rows, metadata
