"""Events of each kind of resource, as a consumer gets them from RabbitMQ."""

import json
import pathlib

import pytest

from manila_lite.rpc.notifications import Notifications
from manila_lite.scheduler.event_kinds import KINDS
from manila_lite.scheduler.events import EventSender
from tests.functional.rpc.test_notifications import Consumer, conf_of
from tests.support import replicated, share_groups, share_migrations, share_transfers
from tests.support.dhss import ShareServersCloud
from tests.support.server_migrations import ServerMigrationCloud

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/events.rst'


class Observed:
    """A cloud whose events go to RabbitMQ, and the payloads received."""

    def __init__(self, cloud, topic):
        self._notifications = Notifications(conf_of(topic), 'manila_lite.test')
        self._sender = EventSender(cloud.db, 'one', self._notifications.send)
        self._sender.run_pass()
        self._consumer = Consumer(topic)

    def payloads(self, resource):
        """Return what has arrived about a resource since the last call."""
        assert self._sender.run_pass()
        documented = documented_fields()
        found = []
        for message in self._consumer.take_all():
            payload = message['payload']
            parent = KINDS[payload['resource']].parent
            assert payload.keys() == documented | ({parent} - {None})
            assert message['event_type'] == (
                f'{payload["resource"]}.{payload["event"]}'
            )
            assert payload['request_id'].startswith('req-')
            if payload['resource'] == resource:
                found.append(payload)
        return found

    def close(self):
        self._notifications.close()
        self._consumer.close()


def documented_fields():
    """Return the fields of all payloads that the documentation shows."""
    _, _, text = PAGE.read_text().partition('code-block:: json\n')
    shown = json.loads(text[: text.index('\n   }') + 5])
    return shown.keys() - {KINDS[shown['resource']].parent}


@pytest.fixture
def observe(topic):
    """`observe(cloud)` sends the events of a cloud from now on."""
    observed = []

    def observe(cloud):
        observed.append(Observed(cloud, topic))
        return observed[-1]

    yield observe
    for one in observed:
        one.close()


def moves(payloads):
    return [(one['event'], one['old_status'], one['new_status']) for one in payloads]


def values(payloads, name):
    return {one[name] for one in payloads}


def test_share_group(build_cloud, observe):
    cloud = build_cloud()
    observed = observe(cloud)
    group = share_groups.create(cloud)
    share_groups.delete(cloud.api, group)
    cloud.settle()
    found = observed.payloads('share_group')
    assert moves(found) == [
        ('create', None, 'creating'),
        ('created', 'creating', 'available'),
        ('delete', 'available', 'deleting'),
        ('deleted', 'deleting', None),
    ]
    assert values(found, 'id') == {group}
    assert values(found, 'project_id') == {'project'}


def test_share_group_snapshot(build_cloud, observe):
    cloud = build_cloud()
    observed = observe(cloud)
    group = share_groups.create(cloud)
    snapshot = share_groups.take_snapshot(cloud, group)
    share_groups.delete_snapshot(cloud.api, snapshot)
    cloud.settle()
    found = observed.payloads('share_group_snapshot')
    assert moves(found) == [
        ('create', None, 'creating'),
        ('created', 'creating', 'available'),
        ('delete', 'available', 'deleting'),
        ('deleted', 'deleting', None),
    ]
    assert values(found, 'id') == {snapshot}
    assert values(found, 'share_group_id') == {group}
    assert values(found, 'project_id') == {'project'}


def test_share_server(build_cloud, observe):
    cloud = build_cloud(kind=ShareServersCloud)
    observed = observe(cloud)
    network = cloud.add_network()
    share = cloud.create_share_on_network(network)
    server = cloud.server_of(share)
    found = observed.payloads('share_server')
    assert moves(found) == [
        ('create', None, 'creating'),
        ('created', 'creating', 'active'),
    ]
    assert values(found, 'id') == {server}
    assert values(found, 'share_network_id') == {network}
    assert values(found, 'project_id') == {'project'}


def test_share_network(build_cloud, observe):
    cloud = build_cloud(kind=ShareServersCloud)
    observed = observe(cloud)
    network = cloud.add_network()
    for status in ('error', 'active'):
        cloud.api.request(
            'POST',
            f'/share-networks/{network}/action',
            {'reset_status': {'status': status}},
            expect=202,
        )
    cloud.api.request('DELETE', f'/share-networks/{network}', expect=202)
    found = observed.payloads('share_network')
    assert moves(found) == [
        ('create', None, 'active'),
        ('reset_error', 'active', 'error'),
        ('reset_active', 'error', 'active'),
        ('deleted', 'active', None),
    ]
    assert values(found, 'id') == {network}
    assert values(found, 'project_id') == {'project'}


def test_share_transfer(build_cloud, observe):
    cloud = build_cloud()
    share = cloud.create_share()
    observed = observe(cloud)
    transfer = share_transfers.offer(cloud.api, share)
    share_transfers.accept(share_transfers.client_of(cloud, 'other'), transfer)
    cloud.settle()
    found = observed.payloads('share_transfer')
    assert moves(found) == [
        ('create', None, 'pending'),
        ('accept', 'pending', 'accepting'),
        ('accepted', 'accepting', None),
    ]
    assert values(found, 'id') == {transfer['id']}
    assert values(found, 'share_id') == {share}
    assert values(found, 'project_id') == {'project'}


def test_share_migration(build_cloud, observe):
    cloud = build_cloud(extra_conf=share_migrations.SHORT_POLL_INTERVAL)
    share = share_migrations.create_on_alpha(cloud)
    observed = observe(cloud)
    share_migrations.start(cloud, share)
    cloud.settle()
    share_migrations.complete(cloud, share)
    cloud.settle()
    found = observed.payloads('share_task')
    assert moves(found) == [
        ('start', 'none', 'migration_starting'),
        ('placed', 'migration_starting', 'migration_in_progress'),
        ('started', 'migration_in_progress', 'migration_driver_in_progress'),
        ('phase1_done', 'migration_driver_in_progress', 'migration_driver_phase1_done'),
        ('complete', 'migration_driver_phase1_done', 'migration_completing'),
        ('completed', 'migration_completing', 'migration_success'),
    ]
    assert values(found, 'id') == {share}
    assert values(found, 'project_id') == {'project'}


def test_share_server_migration(build_cloud, observe):
    cloud = build_cloud(kind=ServerMigrationCloud)
    network = cloud.add_network()
    server = cloud.server_of(cloud.create_share_on_alpha(network))
    observed = observe(cloud)
    cloud.start_to_phase1(server)
    cloud.complete(server)
    cloud.settle()
    found = observed.payloads('share_server_task')
    assert moves(one for one in found if one['id'] == server) == [
        ('start', 'none', 'server_migration_starting'),
        ('started', 'server_migration_starting', 'server_migrating'),
        ('phase1_done', 'server_migrating', 'server_migrating_phase1_done'),
        ('complete', 'server_migrating_phase1_done', 'server_migration_completing'),
        ('completed', 'server_migration_completing', 'server_migration_completed'),
    ]
    assert moves(one for one in found if one['id'] != server) == [
        ('arrived', 'none', 'server_migration_completed')
    ]
    assert values(found, 'share_network_id') == {network}
    assert values(found, 'project_id') == {'project'}


def test_share_replica(build_cloud, observe):
    cloud = build_cloud(kind=replicated.ReplicatedCloud)
    share = cloud.create_share_on('alpha')
    observed = observe(cloud)
    cloud.replicate(share)
    cloud.update()
    found = observed.payloads('share_replica')
    assert moves(found) == [('caught_up', 'out_of_sync', 'in_sync')]
    assert values(found, 'share_id') == {share}
    assert values(found, 'project_id') == {'project'}
