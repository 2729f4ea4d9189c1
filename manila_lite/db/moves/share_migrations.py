"""Moves of a share that is migrated, with both of its instances.

The instance that the share leaves or never got is removed whatever its
status, so that none is left that has no storage, and the one that has its
data is never left in a status in which recovery would delete it.
"""

from oslo_db import exception as db_exc

from manila_lite import exception
from manila_lite.db.moves import shares as share_moves, snapshots
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.networks import share_networks
from manila_lite.db.queries.services import pools, services
from manila_lite.db.queries.shares import instances as share_instances, migrations
from manila_lite.db.queries.types import qos_types, types as share_types
from manila_lite.db.rows import InstanceRow, ShareMigrationRow
from manila_lite.db.session import Session
from manila_lite.db.transitions import TransitionBatch, fire, fire_matching, insert_row
from manila_lite.states.access_rule import (
    ACCESS_RULE,
    DENIED,
    SHARE_INSTANCE_ACCESS,
    RulesStatus,
)
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_task import SHARE_TASK


def place(session: Session, source: InstanceRow, host: str, zone: str | None) -> None:
    """Insert the instance on the destination, where there is room for it.

    It has the share network of the migration, and its new share type with
    the QoS type of new shares of that type, or those of the source.
    """
    found = zone and services.find_zone(session, zone)
    id = session.new_id()
    migration = migrations.get_open(session, source.share_id)
    type_id, qos_type_id = _types(session, source, migration)
    network_id = migration.destination_network_id
    if network_id is not None:
        # It is not deleted meanwhile, but a process of the previous release
        # does not know that.
        share_networks.lock_shared(session, network_id)
    try:
        insert_row(
            session,
            SHARE_INSTANCE,
            'migrate_here',
            id=id,
            share_id=source.share_id,
            host=host,
            availability_zone_id=found.id if found else None,
            share_network_id=network_id,
            share_type_id=type_id,
            qos_type_id=qos_type_id,
            encryption_key_ref=source.encryption_key_ref,
            mount_point_name=source.mount_point_name,
            access_rules_status=RulesStatus.ACTIVE,
            cast_rules_to_readonly=False,
            created_at=session.now,
            scheduled_at=session.now,
            launched_at=source.launched_at,
            progress='100%',  # shown only once it has all data
        )
    except db_exc.DBReferenceError:
        # The type was deleted after it was read.
        raise exception.ShareTypeNotFound(share_type_id=type_id) from None
    snapshots.place(session, source.id, id)
    migrations.update(session, source.share_id, destination_instance_id=id)
    fire(session, SHARE_TASK, source.share_id, 'placed')


def _types(
    session: Session, source: InstanceRow, migration: ShareMigrationRow
) -> tuple[str | None, str | None]:
    """Return the ids of the share type and QoS type of the destination."""
    new_id = migration.new_share_type_id
    if new_id is None:
        return source.share_type_id, source.qos_type_id
    share_type = share_types.find_by_id(session, new_id)
    if share_type is None:
        raise exception.ShareTypeNotFound(share_type_id=new_id)
    return new_id, qos_types.lock_default(session, share_type)


def roll_back(session: Session, share_id: str, error: str | None = None) -> None:
    """Restore the rows from before a migration; idempotent.

    What was copied to the destination is gone from there. The caller fires
    the event of the task.
    """
    migration = migrations.find_open(session, share_id)
    if migration is None:
        return
    _return(session, migration)
    destination = _find(session, migration.destination_instance_id)
    if destination is not None:
        share_moves.remove_instance(session, destination, 'migration_withdrawn')
        pools.adjust_allocated(session, destination.host, -destination.size)
    migrations.close(session, share_id, error)


def keep_remains(session: Session, share_id: str, error: str) -> None:
    """End a migration whose copy could not be removed.

    It stays on its back end with an instance in error, so that an
    administrator can delete it.
    """
    migration = migrations.find_open(session, share_id)
    if migration is None:
        return
    _return(session, migration)
    _fail(session, migration.destination_instance_id)
    migrations.close(session, share_id, error)


def give_up(session: Session, share_id: str, error: str) -> None:
    """End a migration whose second phase failed.

    The data may be on either of the instances, so both are in error.
    """
    migration = migrations.find_open(session, share_id)
    if migration is None:
        return
    _fail(session, migration.source_instance_id)
    _fail(session, migration.destination_instance_id)
    snapshots.give_up(
        session, migration.source_instance_id, migration.destination_instance_id
    )
    migrations.close(session, share_id, error)


def _return(session: Session, migration: ShareMigrationRow) -> None:
    fire_matching(
        session,
        SHARE_INSTANCE,
        'migrate_returned',
        {'id': migration.source_instance_id},
    )
    snapshots.roll_back(
        session, migration.source_instance_id, migration.destination_instance_id
    )


def _fail(session: Session, instance_id: str | None) -> None:
    fire_matching(session, SHARE_INSTANCE, 'migration_failed', {'id': instance_id})


def cut_over(
    session: Session,
    source: InstanceRow,
    destination: InstanceRow,
    error: str | None = None,
) -> None:
    """Let the destination take the place of the source, which is removed.

    With an `error` the source stays on its back end with an instance in
    error, so that an administrator can delete it. The destination gets the
    access rules, all of them still to be applied: the work that syncs them
    is submitted before.
    """
    rules = [
        row
        for row in share_rules.list_for_instance(session, source.id)
        if row.state not in DENIED
    ]
    fire_matching(session, SHARE_INSTANCE, 'arrived', {'id': destination.id})
    if rules:
        moves = TransitionBatch(session)
        moves.insert_rows(
            ACCESS_RULE,
            'allow',
            [
                {
                    'id': session.new_id(),
                    'share_instance_id': destination.id,
                    'access_id': row.id,
                    'created_at': session.now,
                }
                for row in rules
            ],
        )
        moves.fire(
            SHARE_INSTANCE_ACCESS, 'change', {destination.id: RulesStatus.ACTIVE}
        )
        moves.write()
    if error is None:
        snapshots.cut_over(session, source.id, destination.id)
        share_moves.remove_instance(session, source, 'migrated_away')
        pools.adjust_allocated(session, source.host, -source.size)
    else:
        _fail(session, source.id)
    migrations.close(session, source.share_id, error)


def end_task(session: Session, share_id: str, event: str) -> None:
    """Fire the last event of the task.

    If the task was reset meanwhile, it fails unless it is at rest: without
    the migration nothing would continue it.
    """
    for name in (event, 'failed'):
        if fire_matching(session, SHARE_TASK, name, {'id': share_id}):
            return


def _find(session: Session, instance_id: str | None) -> InstanceRow | None:
    if instance_id is None:
        return None
    return share_instances.find(session, instance_id)
