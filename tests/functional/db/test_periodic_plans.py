"""What services run by timers and at start reads few rows of long tables.

On every database, in the state in which nothing is wrong. With many rows a
full scan costs seconds, on each of hundreds of back ends.
"""

import datetime

import pytest
import sqlalchemy as sa

from manila_lite.db.queries import pages
from manila_lite.db.queries.groups import member_sources
from manila_lite.db.queries.recovery import recovery
from manila_lite.db.queries.replicas import updates
from manila_lite.db.queries.servers import idle_servers
from manila_lite.db.queries.services import (
    disks,
    incarnations,
    pools,
    samples,
    services,
)
from manila_lite.db.queries.shares import (
    instances,
    shares,
    transfers as share_transfers,
)
from manila_lite.db.queries.snapshots import snapshots
from manila_lite.db.queries.work import events, queues, retention
from manila_lite.db.session import Database
from manila_lite.scheduler.event_kinds import KINDS
from manila_lite.work import cancel, table
from tests.functional.db import query_plans
from tests.support import databases, mass_rows
from tests.support.service_process import ServiceProcess

SIZES = mass_rows.Sizes(
    shares=20_000,
    rules_of_share=2,
    snapshots=10_000,
    journal=20_000,
    messages=10_000,
    services=40,
    pools=80,
    projects=100,
    networks=5000,
    groups=5000,
    servers=4000,
    migrations=5000,
    decisions=5000,
    waiting=2000,
)
SERVICE = SIZES.service_host(7)
SHORT = {
    'services',
    'service_incarnations',
    'pools',
    'availability_zones',
    'share_types',
    'share_type_extra_specs',
}
"""Tables that are short in every deployment; a scan may be the best plan."""

OLD = datetime.datetime(2020, 1, 1)
KIND = 'provisioning.extend_share_instance'

QUERIES = {
    'shares of a group from a snapshot': (
        member_sources.are_shares_created,
        '00000013-0000-4000-8000-100000000007',
    ),
    'groups from a snapshot that is removed': (
        member_sources.check_not_being_cloned,
        '00000014-0000-4000-8000-100000000007',
    ),
    'sweep for work': (table.sweep_ahead, [SERVICE], [KIND], 10, 60.0),
    'queues to sweep': (table.list_queues_to_sweep, [SERVICE], 10, 60.0),
    'leases of a dead process': (table.expire_leases, [SERVICE]),
    'heartbeat': (
        lambda session: incarnations.heartbeat(
            session,
            host=SERVICE,
            binary='manila-share',
            incarnation='seeded',
            health=None,
            down_time=60.0,
        ),
    ),
    'known allocations': (pools.get_known_allocations, SERVICE),
    'report': (
        pools.save_report,
        SERVICE,
        [pools.PoolReport(f'{SERVICE}#new', {}, 1.0, 1.0)],
        {},
    ),
    **{
        f'recovery of {resource} {where}{since}': (
            lambda session, *args: recovery.list_stuck(
                session, *args[:2], most=30, before=args[2]
            ),
            resource,
            service,
            before,
        )
        for resource in recovery.KINDS
        for where, service in (('on a back end', SERVICE), ('unplaced', None))
        for since, before in (('', None), (' before a start', OLD))
    },
    **{
        f'kinds to recover{since}': (
            recovery.list_stuck_kinds,
            recovery.KINDS,
            SERVICE,
            before,
        )
        for since, before in (('', None), (' before a start', OLD))
    },
    'back ends without a process': (queues.list_unserved, 900.0),
    'data services without a process': (
        queues.is_unserved,
        'manila-data',
        'manila-data',
        900.0,
    ),
    'back end without a process': (queues.lock_unserved, SERVICE, 900.0),
    **{
        f'{state} work of a back end': (
            cancel.list_of_queue,
            SERVICE,
            state,
            pages.BEGINNING,
        )
        for state in ('queued', 'running')
    },
    'any work of a back end': (cancel.has_work, SERVICE),
    'queued rescues': (
        recovery.count_queued_rescues,
        SERVICE,
        ['recovery.rescue_access'],
    ),
    'recycle bin': (shares.list_expired, SERVICE),
    'expired transfers': (share_transfers.list_expired, SERVICE),
    'recycle bin, unplaced': (shares.list_expired, None),
    'replicas': (updates.list_page, SERVICE, '', 100),
    'corrections of roles': (updates.list_times, 'some replica', ['corrected'], OLD),
    'pass over replicas': (
        updates.is_work_pending,
        'replica_updates.update_share_replicas',
        7,
    ),
    'failed deferred deletions': (
        instances.list_failed_deferred_deletions,
        SERVICE,
        '',
        100,
    ),
    'failed deferred deletions of snapshots': (
        snapshots.list_failed_deferred_deletions,
        SERVICE,
        '',
        100,
    ),
    'shares to ensure': (
        instances.list_service_page,
        SERVICE,
        ['available', 'ensuring'],
        '',
        100,
    ),
    'mount point in use': (instances.is_mount_point_used, 'data', 'a share'),
    'servers to mark idle': (idle_servers.list_unmarked, SERVICE, '', 100),
    'idle servers': (idle_servers.list_idle, SERVICE, OLD, '', 100),
    **{
        f'old {name}': (retention.delete_until, rows, OLD)
        for name, rows in {
            'messages': retention.MESSAGES,
            'moves': retention.MOVES,
            'decisions': retention.DECISIONS,
            'server migrations': retention.SERVER_MIGRATIONS,
        }.items()
    },
    'events to send': (events.list_unsent, 0, 100),
    'marks of sent events': (events.mark_sent, range(1, 101)),
    **{
        f'owners of {kind.machine.resource}': (
            events.find_owners,
            kind.table,
            [kind.machine.resource, 'share_instance'],
            [f'unknown {number}' for number in range(3)],
        )
        for kind in KINDS.values()
    },
    'old moves that were sent': (retention.delete_sent_moves, OLD),
    'surplus moves': (retention.find_surplus, 100),
    'dead services': (retention.delete_dead_services, 60.0),
    'slots without samples': (samples.find_missing,),
    'figures of a slot': (samples.measure, samples.FINE, 1_000_000),
    'figures of a day': (samples.measure, samples.DAY, 3000),
    'old samples': (samples.prune, samples.FINE, 1_000_000),
    'due purge': (services.is_claimable, 'old rows'),
}


@pytest.fixture(scope='module', params=databases.KINDS)
def db(request, tmp_path_factory):
    with databases.temporary_database(
        request.param, tmp_path_factory.mktemp('database')
    ) as url:
        databases.create_tables(url)
        db = Database(url)
        mass_rows.insert(db, SIZES)
        db.write(insert_transfers)
        db.write(begin_events)
        db.write(disks.mark_lost, SERVICE)  # its driver has no shares
        mass_rows.analyze(db)
        yield db
        db.dispose()


def begin_events(session):
    """Let all moves belong to events, as after some time."""
    services.claim(session, events.TASK_NAME, 'sender', 0.0)
    session.run(sa.update(events.TASK).values(position=0))


def insert_transfers(session):
    """Offer every tenth share; most offers have not expired."""
    share, table = share_transfers.SHARE, share_transfers.TRANSFER
    ids = [row.id for row in session.rows(sa.select(share.c.id))][::10]
    now = session.now
    session.run_many(
        sa.insert(table),
        [
            {
                'id': id,
                'status': 'pending',
                'resource_type': 'share',
                'resource_id': id,
                'source_project_id': 'project',
                'salt': 'salt',
                'crypt_hash': 'hash',
                'clear_access_rules': False,
                'created_at': now,
                'expires_at': now + datetime.timedelta(hours=number - 5),
            }
            for number, id in enumerate(ids)
        ],
    )


COUNTING = {'figures of a slot': {'work'}, 'samples': {'work'}}
"""Tables of which a query or a task counts rows, up to a limit.

Once in five minutes a scheduler reads as many entries of an index.
"""


@pytest.mark.parametrize('name', QUERIES)
def test_periodic_query_reads_few_rows_of_long_tables(db, name):
    scanned = query_plans.scanned_tables(db, *QUERIES[name])
    refuse_long(scanned, COUNTING.get(name))


def test_tasks_of_services_read_few_rows_of_long_tables(db, tmp_path):
    host, _, backend = SERVICE.partition('@')
    node = ServiceProcess(
        tmp_path,
        db.url,
        fill=False,
        backends=[backend],
        default=f'host = {host}\ndefault_share_type = {mass_rows.TYPE}',
        # The inserted rows are old.
        work='journal_retention = 0\n[recovery]\nlog_retention = 0\n'
        '[retention]\nserver_migrations = 0\njournal_rows = 1000000000',
        section='dummy_driver_replication_type = readable\n'
        'replication_domain = replicas\n'
        f'dummy_driver_replication_path = {tmp_path}',
    )
    try:
        node.register()
        for task in (*node.share.tasks, *node.scheduler.tasks):
            with query_plans.recorded_statements() as statements:
                task.run()
            # Supervision asks the driver only.
            assert statements or task.name == 'supervision', task.name
            scanned = query_plans.explain_scans(db, statements)
            refuse_long(scanned, COUNTING.get(task.name))
    finally:
        node.stop()


def refuse_long(scanned, counted=None):
    """Fail if tables are scanned that may be long."""
    long = scanned.keys() - SHORT - (counted or set())
    assert not long, '\n\n'.join(scanned[table] for table in sorted(long))
