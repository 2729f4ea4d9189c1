"""The source, the zones and the rows of a new replica."""

from collections.abc import Mapping, Sequence
import typing

from manila_lite import exception
from manila_lite.db import rows
from manila_lite.db.queries.access import share_rules, snapshot_rules
from manila_lite.db.queries.services import services
from manila_lite.db.queries.shares import instances as share_instances
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.session import Session
from manila_lite.db.transitions import TransitionBatch
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.replication import guards
from manila_lite.states.access_rule import (
    ACCESS_RULE,
    DENIED,
    SHARE_INSTANCE_ACCESS,
    SNAPSHOT_ACCESS_RULE,
    RulesStatus,
)
from manila_lite.states.share_instance import SHARE_INSTANCE, InstanceStatus
from manila_lite.states.share_replica import READABLE, SHARE_REPLICA, ReplicaState
from manila_lite.states.snapshot_instance import LEAVING, SNAPSHOT_INSTANCE


def get_source(
    session: Session, instances: Sequence[typing.Any], share_id: str
) -> typing.Any:
    """Return the active replica that others can be created from."""
    if not instances:
        raise exception.ShareNotFound(share_id=share_id)
    guards.refuse_during_promotion(instances)
    active = [row for row in instances if row.replica_state == ReplicaState.ACTIVE]
    usable = sorted(
        (row for row in active if row.status == InstanceStatus.AVAILABLE and row.host),
        key=lambda row: (row.created_at, row.id),
    )
    if usable:
        return share_instances.get(session, usable[0].id)
    if not active:
        raise exception.ReplicationException(
            reason=f'share {share_id} has no active replica'
        )
    raise exception.ReplicationException(
        reason=f'the active replica must be available, not {active[0].status}'
    )


def get_zone(session: Session, name_or_id: str | None) -> typing.Any:
    """Return the zone with this name or id."""
    if name_or_id is None:
        return None
    zone = services.find_zone(session, name_or_id)
    if zone is None:
        # The published code of this error is 400 here.
        raise exception.InvalidInput(
            reason=f'there is no availability zone {name_or_id}'
        )
    return zone


def list_zones(
    session: Session,
    active: rows.InstanceRow,
    zone: rows.ZoneRow | None,
    network_id: str | None,
) -> list[str]:
    """Return the zones it may be placed in; empty means any."""
    specs = share_types.get_extra_specs(session, active.share_type_id)
    _check_network(specs, network_id)
    allowed = [
        name.strip()
        for name in (specs.get('availability_zones') or '').split(',')
        if name.strip()
    ]
    if zone is not None:
        if allowed and zone.name not in allowed:
            raise exception.ReplicationException(
                reason=f'availability zone {zone.name} is not one of those of '
                f'the share type: {", ".join(allowed)}'
            )
        allowed = [zone.name]
    if network_id is None:
        return allowed
    network = checks.lock_active_shared(
        session, network_id, of_project=active.project_id
    )
    return checks.zones_with_subnet(session, network.id, allowed)


def _check_network(specs: Mapping[str, str], network_id: str | None) -> None:
    with_servers = share_types.is_true(specs.get('driver_handles_share_servers'))
    if network_id is not None and not with_servers:
        raise exception.InvalidInput(
            reason='share_network_id cannot be used with a share type whose '
            'driver_handles_share_servers is false'
        )


def insert_rows(
    session: Session,
    active: rows.InstanceRow,
    replica_id: str,
    zone: rows.ZoneRow | None,
    network_id: str | None,
) -> None:
    """Insert a replica with its access rules and snapshot instances."""
    rules = [
        row
        for row in share_rules.list_for_instance(session, active.id)
        if row.state not in DENIED
    ]
    snapshot_instances = [
        row
        for row in snapshots.list_on_share_instance(session, active.id)
        if row.status not in LEAVING
    ]
    moves = TransitionBatch(session)
    moves.insert_rows(
        SHARE_INSTANCE,
        'create',
        [
            {
                'id': replica_id,
                'share_id': active.share_id,
                'share_type_id': active.share_type_id,
                # Of the active replica, which keeps it from being deleted.
                'qos_type_id': active.qos_type_id,
                'encryption_key_ref': active.encryption_key_ref,
                'replica_state': SHARE_REPLICA.initial['replicate'],
                'availability_zone_id': zone and zone.id,
                'share_network_id': network_id,
                'access_rules_status': RulesStatus.ACTIVE,
                'cast_rules_to_readonly': active.replication_type == READABLE,
                'created_at': session.now,
            }
        ],
    )
    if rules:
        moves.insert_rows(
            ACCESS_RULE,
            'allow',
            [
                {
                    'id': session.new_id(),
                    'share_instance_id': replica_id,
                    'access_id': row.id,
                    'created_at': session.now,
                }
                for row in rules
            ],
        )
        moves.fire(SHARE_INSTANCE_ACCESS, 'change', {replica_id: RulesStatus.ACTIVE})
    if snapshot_instances:
        _insert_snapshot_rows(session, moves, active.id, replica_id, snapshot_instances)
    moves.write()


def insert_missing_snapshots(session: Session, active_id: str, replica_id: str) -> bool:
    """Insert the snapshot instances that a replica lacks, if any."""
    present = {
        row.snapshot_id for row in snapshots.list_on_share_instance(session, replica_id)
    }
    missing = [
        row
        for row in snapshots.list_on_share_instance(session, active_id)
        if row.status not in LEAVING and row.snapshot_id not in present
    ]
    if missing:
        moves = TransitionBatch(session)
        _insert_snapshot_rows(session, moves, active_id, replica_id, missing)
        moves.write()
    return bool(missing)


def _insert_snapshot_rows(
    session: Session,
    moves: TransitionBatch,
    active_id: str,
    replica_id: str,
    snapshot_instances: Sequence[rows.SnapshotInstanceRow],
) -> None:
    """Insert its snapshot instances and their access rules."""
    instance_ids = {row.snapshot_id: session.new_id() for row in snapshot_instances}
    moves.insert_rows(
        SNAPSHOT_INSTANCE,
        'create',
        [
            {
                'id': id,
                'snapshot_id': snapshot_id,
                'share_instance_id': replica_id,
                'progress': '0%',
                'created_at': session.now,
            }
            for snapshot_id, id in instance_ids.items()
        ],
    )
    if any(row.mount_snapshot_support for row in snapshot_instances):
        moves.insert_rows(
            SNAPSHOT_ACCESS_RULE,
            'allow',
            [
                {
                    'id': session.new_id(),
                    'access_id': rule.access_id,
                    'share_snapshot_instance_id': instance_ids[rule.snapshot_id],
                    'created_at': session.now,
                }
                for rule in snapshot_rules.list_on_share_instance(session, active_id)
                if rule.state not in DENIED and rule.snapshot_id in instance_ids
            ],
        )
