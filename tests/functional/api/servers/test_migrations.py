"""Refusals and answers of the share server migration API."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import networks, services, share_servers, shares, snapshots
from tests.functional.api import differences, published_api
from tests.functional.api.test_published_fields import fits
from tests.support.cloud import TYPE_ID
from tests.support.server_migrations import MIGRATION_OPTIONS, ServerMigrationCloud

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
SNAPSHOT_INSTANCE = snapshots.SnapshotInstance.__table__
NETWORK = networks.ShareNetwork.__table__
SUBNET = networks.ShareNetworkSubnet.__table__
ZONE = services.AvailabilityZone.__table__
SERVER = share_servers.ShareServer.__table__

# Additional fields: reasons, and the phase, age and details of the progress.
ADDITIONAL_FIELDS = {
    'check (flat)': {'reasons'},
    'progress (flat)': {'details', 'phase', 'last_heard_at'},
    'complete (flat)': set(),
}


@pytest.fixture(scope='module')
def cloud(tmp_path_factory):
    cloud = ServerMigrationCloud(tmp_path_factory.mktemp('moving'))
    yield cloud
    cloud.db.dispose()


@pytest.fixture(scope='module')
def shared(cloud):
    share = cloud.create_share_on_alpha(cloud.add_network(), size=2)
    snapshot = cloud.snapshot(share)
    return share, cloud.server_of(share), snapshot


def change_rows(cloud, table, where, **values):
    """Change rows; return a function that restores them."""
    before = cloud.rows(sa.select(*[table.c[name] for name in values]).where(where))[
        0
    ]._mapping

    def update(values):
        cloud.db.write(
            lambda session: session.run(sa.update(table).where(where).values(**values))
        )

    update(values)
    return lambda: update(dict(before))


BUSY = {
    'server': lambda cloud, share, server: change_rows(
        cloud, SERVER, SERVER.c.id == server, status='network_change'
    ),
    'share': lambda cloud, share, server: change_rows(
        cloud, INSTANCE, INSTANCE.c.share_id == share, status='extending'
    ),
    'group': lambda cloud, share, server: change_rows(
        cloud, SHARE, SHARE.c.id == share, share_group_id='group'
    ),
    'rules': lambda cloud, share, server: change_rows(
        cloud, INSTANCE, INSTANCE.c.share_id == share, access_rules_status='out_of_sync'
    ),
    'rules in error': lambda cloud, share, server: change_rows(
        cloud, INSTANCE, INSTANCE.c.share_id == share, access_rules_status='error'
    ),
    'snapshot': lambda cloud, share, server: change_rows(
        cloud, SNAPSHOT_INSTANCE, SNAPSHOT_INSTANCE.c.id.is_not(None), status='deleting'
    ),
}


@pytest.mark.parametrize('busy', BUSY)
def test_busy_resource_conflicts_and_nothing_changes(cloud, shared, busy):
    share, server, _ = shared
    restore = BUSY[busy](cloud, share, server)
    before = cloud.state_summary()
    for action in ('migration_start', 'migration_check'):
        answer = cloud.act(server, action, {'host': 'node@beta', **MIGRATION_OPTIONS})
        assert answer.status_int == 409, answer.text
    assert cloud.state_summary() == before
    assert cloud.migrations() == []
    restore()


@pytest.mark.parametrize(
    'code, options',
    [
        (409, {'host': 'node@alpha'}),
        (409, {'host': 'node@alpha#pool'}),
        (404, {'host': 'node@moon'}),
        (400, {'host': 'moon'}),
        (400, {'host': ''}),
        (400, {'host': None}),
        (400, {'host': 'x' * 256}),
        (400, {'writable': 'perhaps'}),
        (400, {'nondisruptive': None}),
        (409, {'preserve_snapshots': False}),
        (400, {'new_share_network_id': '00000000-0000-4000-8000-000000000000'}),
        (
            400,
            {
                'host': 'node@moon',
                'new_share_network_id': '00000000-0000-4000-8000-000000000000',
            },
        ),
        (400, {'new_share_network_id': 7}),
    ],
)
def test_impossible_migration_is_refused_by_check_and_start(
    cloud, shared, code, options
):
    _, server, _ = shared
    body = {'host': 'node@beta', **MIGRATION_OPTIONS, **options}
    for action in ('migration_start', 'migration_check'):
        answer = cloud.act(server, action, body)
        assert answer.status_int == code, (action, answer.text)
    assert cloud.migrations() == []
    assert cloud.server(server)['status'] == 'active'


@pytest.mark.parametrize(
    'missing', ['host', 'writable', 'nondisruptive', 'preserve_snapshots']
)
@pytest.mark.facts('add-share-server-migration.5')
def test_every_option_is_required(cloud, shared, missing):
    body = {'host': 'node@beta', **MIGRATION_OPTIONS}
    del body[missing]
    answer = cloud.act(shared[1], 'migration_start', body)
    assert answer.status_int == 400
    assert missing in answer.text


def test_network_that_is_foreign_or_changing_is_refused(cloud, shared):
    _, server, _ = shared
    foreign, changing = cloud.add_network(), cloud.add_network()
    change_rows(cloud, NETWORK, NETWORK.c.id == foreign, project_id='other')
    change_rows(cloud, NETWORK, NETWORK.c.id == changing, status='network_change')
    for network in (foreign, changing):
        cloud.start(server, expect=400, new_share_network_id=network)
        cloud.check(server, expect=400, new_share_network_id=network)


def test_network_without_a_subnet_for_the_destination_conflicts(cloud, shared):
    _, server, _ = shared
    network = cloud.add_network()
    moon = '00000000-0000-4000-8000-00000000000a'
    cloud.db.write(
        lambda session: session.run(
            sa.insert(ZONE), id=moon, name='moon', created_at=session.now
        )
    )
    change_rows(
        cloud, SUBNET, SUBNET.c.share_network_id == network, availability_zone_id=moon
    )
    answer = cloud.act(
        server,
        'migration_start',
        {'host': 'node@beta', **MIGRATION_OPTIONS, 'new_share_network_id': network},
    )
    assert answer.status_int == 409
    assert 'no subnet' in answer.text


def test_another_network_is_a_disruption(cloud, shared):
    _, server, _ = shared
    network = cloud.add_network()
    cloud.start(server, expect=400, nondisruptive=True, new_share_network_id=network)
    answer = cloud.check(server, nondisruptive=True, new_share_network_id=network)
    assert answer['compatible'] is False
    assert 'nondisruptive' in answer['reasons'][0]


def test_scheduler_checks_capacity_and_types(cloud, shared):
    share, server, _ = shared
    restore = change_rows(cloud, SHARE, SHARE.c.id == share, size=50_000)
    cloud.start(server, expect=409)
    answer = cloud.check(server)
    assert answer['compatible'] is False
    assert 'GiB' in answer['reasons'][0]
    restore()
    specs = f'/types/{TYPE_ID}/extra_specs'
    cloud.api.request(
        'POST', specs, {'extra_specs': {'share_backend_name': 'alpha'}}, expect=200
    )
    cloud.start(server, expect=409)
    assert TYPE_ID in cloud.check(server)['reasons'][0]
    cloud.api.request('DELETE', f'{specs}/share_backend_name', expect=202)
    cloud.start(server, host='node@beta#moon', expect=409)
    assert cloud.check(server)['compatible'] is True


def test_server_without_shares_cannot_be_migrated(cloud):
    share = cloud.create_share_on_alpha(cloud.add_network())
    server = cloud.server_of(share)
    cloud.api.delete(share)
    cloud.settle()
    cloud.start(server, expect=409)


def test_members_do_not_learn_about_servers(cloud, shared):
    _, server, _ = shared
    member = type(cloud.api)(cloud, roles='member,reader')
    for id in (server, '00000000-0000-4000-8000-000000000000'):
        for action in (
            'migration_check',
            'migration_start',
            'migration_complete',
            'migration_cancel',
            'migration_get_progress',
            'reset_task_state',
        ):
            answer = member.request('POST', f'/share-servers/{id}/action', {action: {}})
            assert answer.status_int == 403


def test_answers_have_published_and_additional_fields(tmp_path):
    cloud = ServerMigrationCloud(tmp_path)
    server = cloud.server_of(cloud.create_share_on_alpha(cloud.add_network()))
    answers = {'check (flat)': cloud.check(server)}
    cloud.start_to_phase1(server)
    answers['progress (flat)'] = cloud.progress(server)
    answers['complete (flat)'] = cloud.complete(server)
    for view, answer in answers.items():
        rows = published_api.view_fields('share server migration', view)
        assert set(answer) == {row.field for row in rows} | ADDITIONAL_FIELDS[view]
        for row in rows:
            value, kind = answer[row.field], row.type
            if kind.startswith('object '):
                names = set(kind.removeprefix('object ').split(','))
                assert set(value) == names
            else:
                assert fits(value, kind.replace(' or empty', ''))
    cloud.db.dispose()


@differences.proves('progress of unknown share servers')
def test_progress_of_an_unknown_server_is_not_found(cloud):
    cloud.progress('00000000-0000-4000-8000-000000000000', expect=404)
