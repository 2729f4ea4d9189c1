"""Crashes at every point of the life of share groups.

As in `test_crashes`, for groups and the shares in them, also on share
networks: there a group has its share server created with it.
"""

import datetime

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import cloud_snapshots
from tests.support import sampling
from tests.support import share_groups
from tests.support.dhss import ShareServersCloud
from tests.support.rewind import rewindable

SEEDS = sampling.seeds(100, 8)


def create(cloud, group):
    type_id = share_groups.show(cloud.api, group)['share_group_type_id']
    share_groups.request(cloud.api, type_id)
    cloud.settle()


def create_and_delete(cloud, group):
    type_id = share_groups.show(cloud.api, group)['share_group_type_id']
    share_groups.request(cloud.api, type_id)
    cloud.settle()
    for one in cloud.api.get('/share-groups')['share_groups']:
        share_groups.delete(cloud.api, one['id'], expect=None)
    cloud.settle()


def delete(cloud, group):
    share_groups.delete(cloud.api, group)
    cloud.settle()


def create_share(cloud, group):
    cloud.api.create(share_group_id=group)
    cloud.settle()


def take_snapshot(cloud, group):
    share_groups.request_snapshot(cloud.api, group)
    cloud.settle()


def take_snapshot_and_delete(cloud, group):
    answer = share_groups.request_snapshot(cloud.api, group)
    cloud.settle()
    share_groups.delete_snapshot(
        cloud.api, answer.json['share_group_snapshot']['id']
    )
    cloud.settle()


def copy_group(cloud, group):
    answer = share_groups.request_snapshot(cloud.api, group)
    cloud.settle()
    snapshot = answer.json['share_group_snapshot']['id']
    share_groups.request_copy(cloud.api, snapshot, expect=None)
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (create, create_and_delete, delete, create_share)
}
SNAPSHOT_VERBS = {
    verb.__name__: verb
    for verb in (take_snapshot, take_snapshot_and_delete, copy_group)
}


@pytest.fixture(scope='module')
def begin(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('groups'),
        share_groups.create,
        kind=crash_images.CrashableCloud,
        backends=['alpha'],
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('name', VERBS)
def test_a_crash_anywhere_breaks_no_invariant(begin, name):
    crashing.crash_everywhere(begin, VERBS[name], name)


@sampling.enumeration
def test_two_crashes_and_bad_messages_break_no_invariant(begin):
    crashing.crash_twice(begin, SEEDS, VERBS)


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', VERBS)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    begin, name, fencing, shared_database
):
    pausing.pause_verb(begin, VERBS[name], name, fencing, shared_database)


def prepare_shares(cloud):
    """Create a group with two shares."""
    cloud_snapshots.enable_snapshot_features(cloud)
    group = share_groups.create(cloud)
    for _ in range(2):
        cloud.create_share(share_group_id=group)
    return group


@pytest.fixture(scope='module')
def begin_with_shares(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('group snapshots'),
        prepare_shares,
        kind=crash_images.CrashableCloud,
        backends=['alpha'],
    ) as begin:
        yield begin


@sampling.enumeration
@pytest.mark.parametrize('name', SNAPSHOT_VERBS)
def test_a_crash_while_a_group_is_snapshotted_breaks_no_invariant(
    begin_with_shares, name
):
    crashing.crash_everywhere(begin_with_shares, SNAPSHOT_VERBS[name], name)


SINGLE = 'share_driver = tests.support.single_copies_driver.SingleCopiesDriver'
SLOW = 'dummy_driver_from_snapshot_steps = 2'


@sampling.enumeration
@pytest.mark.parametrize('how', [SINGLE, SLOW], ids=['singly', 'slowly'])
def test_a_crash_while_a_group_is_copied_breaks_no_invariant(
    begin_with_shares, how
):
    crashing.crash_everywhere(
        begin_with_shares, copy_group, f'copy {how}', backend_conf=how
    )


@sampling.combinations('fencing', 'how')
@pausing.FENCING
@pytest.mark.parametrize('how', [SINGLE, SLOW], ids=['singly', 'slowly'])
def test_a_pause_while_a_group_is_copied_breaks_no_invariant(
    begin_with_shares, how, fencing, shared_database
):
    def begin(backend_conf):
        return begin_with_shares(backend_conf=f'{backend_conf}\n{how}\n')

    pausing.pause_verb(
        begin, copy_group, f'copy {how}', fencing, shared_database
    )


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', SNAPSHOT_VERBS)
def test_a_pause_while_a_group_is_snapshotted_breaks_no_invariant(
    begin_with_shares, name, fencing, shared_database
):
    pausing.pause_verb(
        begin_with_shares, SNAPSHOT_VERBS[name], name, fencing, shared_database
    )


# On share networks


def create_on_network(cloud, found):
    share_groups.request(
        cloud.api, found['type'], share_network_id=found['empty']
    )
    cloud.settle()


def create_on_used_network(cloud, found):
    share_groups.request(
        cloud.api, found['type'], share_network_id=found['used']
    )
    cloud.settle()


def create_with_share_at_once(cloud, found):
    cloud.api.create(share_network_id=found['empty'])
    create_on_network(cloud, found)


def fail_to_create_server(cloud, found):
    cloud.driver().half_fail_next('_setup_server')
    create_on_network(cloud, found)


def create_share_on_server(cloud, found):
    cloud.api.create(share_group_id=found['group'])
    cloud.settle()


def copy_group_on_server(cloud, found):
    share_groups.request_copy(cloud.api, found['snapshot'])
    cloud.settle()


def delete_with_server(cloud, found):
    share_groups.delete(cloud.api, found['lonely'])
    cloud.settle()


def delete_group_and_idle_server(cloud, found):
    share_groups.delete(cloud.api, found['lonely'], expect=None)
    cloud.settle()
    cloud.clock.advance(601)
    cloud.share.backends[0].endpoints.share_servers.delete_idle(
        datetime.timedelta(minutes=10)
    )
    cloud.settle()


SERVER_VERBS = {
    verb.__name__: verb
    for verb in (
        create_on_network,
        create_on_used_network,
        create_with_share_at_once,
        fail_to_create_server,
        create_share_on_server,
        copy_group_on_server,
        delete_with_server,
        delete_group_and_idle_server,
    )
}
WITH_LAST = 'delete_share_server_with_last_share = true'


def prepare_servers(cloud):
    """Create a group with a snapshot, one alone on its server, a network."""
    cloud_snapshots.enable_snapshot_features(cloud)
    found = {
        'type': share_groups.create_type(cloud.api),
        'empty': cloud.add_network(),
        'used': cloud.add_network(),
    }
    for name, network in (
        ('group', found['used']),
        ('lonely', cloud.add_network()),
    ):
        found[name] = share_groups.create(
            cloud, found['type'], share_network_id=network
        )
    cloud.create_share(share_group_id=found['group'])
    found['snapshot'] = share_groups.take_snapshot(cloud, found['group'])
    return found


@pytest.fixture(scope='module')
def begin_on_servers(tmp_path_factory):
    with rewindable(
        tmp_path_factory.mktemp('groups on servers'),
        prepare_servers,
        kind=crash_images.CrashableShareServersCloud,
        backends=['alpha'],
    ) as begin:
        yield begin


def begin_verb(begin, name):
    """Begin with servers deleted with their last group for one verb."""
    if name != 'delete_with_server':
        return begin
    return lambda *args, **kwargs: begin(
        *args, **{**kwargs, 'extra_conf': WITH_LAST}
    )


@sampling.enumeration
@pytest.mark.parametrize('name', SERVER_VERBS)
def test_a_crash_anywhere_on_a_share_server_breaks_no_invariant(
    begin_on_servers, name
):
    crashing.crash_everywhere(
        begin_verb(begin_on_servers, name), SERVER_VERBS[name], name
    )


@sampling.enumeration
def test_two_crashes_on_share_servers_break_no_invariant(begin_on_servers):
    crashing.crash_twice(begin_on_servers, SEEDS, SERVER_VERBS)


@sampling.combinations('fencing', 'name')
@pausing.FENCING
@pytest.mark.parametrize('name', SERVER_VERBS)
def test_a_pause_on_a_share_server_breaks_no_invariant(
    begin_on_servers, name, fencing, shared_database
):
    pausing.pause_verb(
        begin_verb(begin_on_servers, name),
        SERVER_VERBS[name],
        name,
        fencing,
        shared_database,
        ShareServersCloud.check_invariants,
    )
