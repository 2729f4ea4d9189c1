"""What drivers are given has the published fields, of their types.

Ported drivers read them as items.
"""

import collections
import datetime

import pytest

from tests.support import reference
from tests.support.replicated import ReplicatedCloud

DRIVER = """
share_driver = tests.support.recording_driver.RecordingDriver
dummy_driver_replica_steps = 2
"""
OPTIONAL = {
    'provider_location': 'only drivers that reply one have it',
    'share_network_id': 'none without share servers',
    'share_server_id': 'none without share servers',
    'share_server': 'none without share servers',
    'access_level': 'none on snapshots',
}
"""Fields of type text that may be None, and why."""


@pytest.fixture(scope='module')
def calls(tmp_path_factory):
    """All calls in the life of two replicas and of a snapshot of theirs."""
    cloud = ReplicatedCloud(tmp_path_factory.mktemp('cloud'), backend_conf=DRIVER)
    share = cloud.create_share_on('alpha')
    cloud.allow(share)
    first = cloud.replicate(share)
    for _ in range(4):
        cloud.update()
    snapshot = cloud.snapshot(share)
    for _ in range(4):
        cloud.update()
    second = cloud.replicate(share)
    for _ in range(4):
        cloud.update()
    cloud.ask('promote', first)
    cloud.settle()
    cloud.ask('delete', second)
    cloud.settle()
    cloud.api.request('DELETE', f'/snapshots/{snapshot}', expect=202)
    cloud.settle()
    yield [call for name in cloud.backend_names for call in cloud.driver(name).recorded]
    cloud.db.dispose()


def has_type(kind, field, value, record):
    """Tell whether a driver may be given this value."""
    if kind == 'time':
        # A share has no such time before it is first available.
        return isinstance(value, datetime.datetime) or (
            value is None and record.get('status') == 'creating'
        )
    if kind == 'text':
        return isinstance(value, str) or (value is None and field in OPTIONAL)
    return kind == 'any' or value is False


def value_of(record, path):
    *parents, field = path.split('.')
    for parent in parents:
        record = record[parent]
    return field, record[field], record


ARGUMENTS = collections.defaultdict(list)
for row in reference.table('driver-arguments.csv'):
    ARGUMENTS[row['method'], row['parameter']].append(row)


@pytest.mark.parametrize('method, parameter', ARGUMENTS, ids=map('-'.join, ARGUMENTS))
def test_arguments_have_the_published_fields(calls, method, parameter):
    given = [arguments[parameter] for name, arguments in calls if name == method]
    records = [
        record for one in given for record in (one if isinstance(one, list) else [one])
    ]
    assert records, 'it was not called'
    for row in ARGUMENTS[method, parameter]:
        for record in records:
            field, value, parent = value_of(record, row['field'])
            assert has_type(row['type'], field, value, parent), row


def test_snapshots_have_the_id_of_the_share_instance_twice(calls):
    """Drivers name the share of a snapshot by its `share_id`."""
    snapshots = [
        snapshot
        for name, arguments in calls
        if name == 'create_replicated_snapshot'
        for snapshot in arguments['replica_snapshots']
    ]
    assert snapshots
    for one in snapshots:
        assert one['share_id'] == one['share_instance_id'] == one['share'].id
        assert one['share_name'] == one['share'].name


def test_times_of_a_share_are_those_of_its_first_moves(build_cloud):
    cloud = build_cloud(backends=['alpha'], backend_conf=DRIVER)
    before = cloud.db.utcnow()
    cloud.clock.advance(10)
    share = cloud.create_share()
    cloud.clock.advance(10)
    cloud.api.act(share, 'extend', {'new_size': 5})
    cloud.settle()
    cloud.api.act(share, 'extend', {'new_size': 6})
    cloud.settle()
    first, second = (
        arguments['share']
        for name, arguments in cloud.driver().recorded
        if name == 'extend_share'
    )
    assert first.launched_at == second.launched_at
    assert (
        before
        < first.created_at
        < first.scheduled_at
        < first.launched_at
        < before + datetime.timedelta(seconds=20)
        < second.updated_at
    )


def test_managed_share_has_the_times_of_its_move(build_cloud):
    cloud = build_cloud(backends=['alpha'], backend_conf=DRIVER)
    path = cloud.driver().add_unmanaged_share('old', size=2)
    share = cloud.api.request(
        'POST',
        '/shares/manage',
        {
            'share': {
                'protocol': 'NFS',
                'service_host': 'node@alpha#pool',
                'export_path': path,
            }
        },
        expect=200,
    ).json['share']['id']
    cloud.settle()
    cloud.api.act(share, 'extend', {'new_size': 5})
    cloud.settle()
    (given,) = (
        arguments['share']
        for name, arguments in cloud.driver().recorded
        if name == 'extend_share'
    )
    assert given.created_at == given.scheduled_at < given.launched_at
