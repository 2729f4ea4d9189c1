"""The official clients, with every authentication method; a usual run tries one."""

import dataclasses
import itertools
import typing

from openstack import connection, exceptions
import pytest

from tests.functional.stories.conftest import new_installation
from tests.support import sampling
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.keystone_server import Keystone
from tests.support.processes import wait_until

pytestmark = sampling.enumeration

PASSWORD = 'a long secret'
STRATEGIES = {'none': 'noauth', 'http_basic': 'http_basic', 'password': 'keystone'}

_names = (f'share-{number}' for number in itertools.count())


@dataclasses.dataclass(frozen=True)
class Deployment:
    """An installation, and both clients authenticated to it."""

    installation: Installation
    project_id: str
    cli: Cli
    sdk: typing.Any


@pytest.fixture(scope='module', params=sampling.sample(STRATEGIES, 1))
def deployment(request, tmp_path_factory):
    with Keystone() as keystone:
        alice = keystone.add_user(
            'alice', PASSWORD, 'demo', ['admin', 'member', 'reader']
        )
        with new_installation(
            tmp_path_factory.mktemp(request.param) / 'installation',
            auth=STRATEGIES[request.param],
            options='default_share_type = default',
            backends={
                'dummy': {
                    'dummy_driver_capacity_gb': 100,
                    'max_over_subscription_ratio': 1,
                }
            },
            sections=keystone.service_config(),
        ) as installation:
            keystone.share_url = installation.url
            if request.param == 'http_basic':
                installation.manage(
                    'user',
                    'add',
                    'alice',
                    '--user-id',
                    alice.id,
                    '--project',
                    alice.project_id,
                    '--role',
                    'admin',
                    stdin=f'{PASSWORD}\n',
                )
            installation.start()
            auth = {
                'none': {'endpoint': installation.url},
                'http_basic': {
                    'endpoint': installation.url,
                    'username': 'alice',
                    'password': PASSWORD,
                },
                'password': keystone.client_options(alice),
            }[request.param]
            deployment = Deployment(
                installation,
                'admin' if request.param == 'none' else alice.project_id,
                cli_of(request.param, auth),
                sdk_of(request.param, auth),
            )
            deployment.cli('share type create', 'default', 'false')
            yield deployment
            deployment.sdk.close()


def cli_of(kind, auth):
    options = itertools.chain.from_iterable(
        (f'--os-{name.replace("_", "-")}', value) for name, value in auth.items()
    )
    return Cli('--os-auth-type', kind, *options)


def sdk_of(kind, auth):
    return connection.Connection(
        auth_type=kind,
        auth=auth,
        region_name='RegionOne',
        shared_file_system_default_microversion='2.99',
    )


@pytest.fixture
def cli(deployment):
    return deployment.cli


@pytest.fixture
def sdk(deployment):
    return deployment.sdk.shared_file_system


# Shares


def test_command_line_manages_the_life_of_a_share(deployment, cli):
    name = next(_names)
    made = cli('share create', 'NFS', '1', '--name', name, '--property', 'made=today')
    assert made['project_id'] == deployment.project_id
    assert wait_for_share(cli, name)['properties'] == {'made': 'today'}
    assert name in [one['Name'] for one in cli('share list')]
    cli('share resize', name, '4')
    assert wait_for_share(cli, name)['size'] == 4
    cli('share resize', name, '2')
    assert wait_for_share(cli, name)['size'] == 2
    cli('share set', name, '--property', 'for=all')
    cli('share unset', name, '--property', 'made')
    assert cli('share properties show', name) == {'for': 'all'}
    cli('share delete', name, '--soft')
    assert name not in [one['Name'] for one in cli('share list')]
    assert [one['Name'] for one in cli('share list', '--soft-deleted')] == [name]
    cli('share restore', made['id'])
    assert wait_for_share(cli, name)['status'] == 'available'
    cli('share delete', name)
    wait_until(lambda: not cli('share list', '--name', name), f'{name} is gone')
    assert deployment.installation.problems() == []


def wait_for_share(cli, name):
    """Wait until the share is in no transitional status; return it."""

    def check():
        share = cli('share show', name)
        return share if not share['status'].endswith('ing') else None

    return wait_until(check, f'{name} is at rest')


def test_sdk_manages_the_life_of_a_share(deployment, sdk):
    name = next(_names)
    share = sdk.create_share(
        share_protocol='NFS', size=1, name=name, metadata={'made': 'today'}
    )
    share = wait_at_rest(sdk, share)
    assert (share.project_id, share.metadata) == (
        deployment.project_id,
        {'made': 'today'},
    )
    assert sdk.find_share(name).id == share.id
    assert share.id in [one.id for one in sdk.shares()]
    for size in (4, 2):
        sdk.resize_share(share, size)
        assert wait_at_rest(sdk, share).size == size
    sdk.set_share_metadata(share, **{'for': 'all'})
    sdk.delete_share_metadata(share.id, ['made'])
    assert sdk.get_share(share).metadata == {'for': 'all'}
    sdk.update_share(share, display_description='renamed')
    assert sdk.get_share(share).description == 'renamed'
    sdk.soft_delete_share(share)
    assert share.id not in [one.id for one in sdk.shares()]
    sdk.restore_share(share)
    assert share.id in [one.id for one in sdk.shares()]
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)
    assert deployment.installation.problems() == []


def test_sdk_reads_lists_in_pages_of_any_size(sdk):
    """It asks for more after the last link, too, by `marker` alone."""
    made = [
        wait_at_rest(
            sdk, sdk.create_share(share_protocol='NFS', size=1, name=next(_names))
        )
        for _ in range(4)
    ]
    networks = [sdk.create_share_network(name=next(_names)) for _ in range(4)]
    locks = [
        sdk.create_resource_lock(resource_id=share.id, resource_type='share')
        for share in made
    ]
    for read in (
        sdk.shares,
        sdk.share_instances,
        sdk.share_networks,
        sdk.resource_locks,
    ):
        ids = [one.id for one in read()]
        assert len(ids) >= len(made)
        for limit in range(1, len(ids) + 2):
            assert [one.id for one in read(limit=limit)] == ids
    for lock in locks:
        sdk.delete_resource_lock(lock)
    for share in made:
        sdk.delete_share(share)
    for network in networks:
        sdk.delete_share_network(network)


def test_sdk_reads_long_lists_page_by_page(sdk):
    shares = [
        wait_at_rest(
            sdk, sdk.create_share(share_protocol='NFS', size=1, name=next(_names))
        )
        for _ in range(3)
    ]
    ours = [share.id for share in reversed(shares)]
    for query in ({}, {'all_tenants': True}):
        listed = [one.id for one in sdk.shares(limit=1, **query)]
        assert listed[:3] == ours
        assert len(set(listed)) == len(listed)
    instances = [one.id for one in sdk.share_instances(limit=1)]
    assert len(set(instances)) == len(instances) >= len(ours)
    for share in shares:
        sdk.delete_share(share, ignore_missing=False)
        sdk.wait_for_delete(share, interval=0.05, wait=30)


def wait_at_rest(sdk, share):
    def check():
        found = sdk.get_share(share)
        return found if not found.status.endswith('ing') else None

    return wait_until(check, f'{share.name} is at rest')


# Snapshots


def test_sdk_manages_the_life_of_a_snapshot(deployment, sdk):
    kind = sdk.create_share_type(
        name=f'of-{next(_names)}',
        extra_specs={
            'driver_handles_share_servers': 'False',
            'snapshot_support': 'True',
            'revert_to_snapshot_support': 'True',
        },
    )
    share = wait_at_rest(
        sdk,
        sdk.create_share(
            share_protocol='NFS', size=1, name=next(_names), share_type=kind.name
        ),
    )
    snapshot = sdk.create_share_snapshot(
        share_id=share.id, name='one', metadata={'made': 'today'}
    )
    wait_idle(deployment)
    assert sdk.get_share_snapshot(snapshot).status == 'available'
    assert [one.id for one in sdk.share_snapshots(share_id=share.id)] == [snapshot.id]
    sdk.update_share_snapshot(snapshot, display_name='two')
    sdk.set_share_snapshot_metadata(snapshot, **{'for': 'all'})
    sdk.delete_share_snapshot_metadata(snapshot.id, ['made'])
    found = sdk.get_share_snapshot(snapshot)
    assert (found.name, found.metadata) == ('two', {'for': 'all'})
    (instance,) = sdk.share_snapshot_instances(snapshot_id=snapshot.id)
    assert sdk.get_share_snapshot_instance(instance).status == 'available'
    sdk.resize_share(share, 3)
    assert wait_at_rest(sdk, share).size == 3
    sdk.revert_share_to_snapshot(share, snapshot)
    wait_idle(deployment)
    found = sdk.get_share(share)
    assert (found.status, found.size) == ('available', 1)
    sdk.reset_share_snapshot_status(snapshot, 'error')
    sdk.delete_share_snapshot(snapshot)
    sdk.wait_for_delete(snapshot, interval=0.05, wait=30)
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)
    sdk.delete_share_type(kind)
    for message in sdk.user_messages():
        sdk.delete_user_message(message)
    assert deployment.installation.problems() == []


def wait_idle(deployment):
    wait_until(lambda: not deployment.installation.pending_work(), 'no work is pending')


# Access rules and locks


def test_sdk_allows_and_denies_clients(deployment, sdk):
    share = wait_at_rest(
        sdk, sdk.create_share(share_protocol='NFS', size=1, name=next(_names))
    )
    rule = sdk.create_access_rule(
        share.id,
        access_type='ip',
        access_to='10.0.0.1',
        access_level='ro',
        metadata={'for': 'all'},
        lock_deletion=True,
    )
    wait_idle(deployment)
    found = sdk.get_access_rule(rule.id)
    assert (found.state, found.access_level, found.metadata) == (
        'active',
        'ro',
        {'for': 'all'},
    )
    assert [one.id for one in sdk.access_rules(share)] == [rule.id]
    with pytest.raises(exceptions.HttpException) as refused:
        sdk.delete_access_rule(rule.id, share.id)
    assert refused.value.status_code == 403
    sdk.delete_access_rule(rule.id, share.id, unrestrict=True)
    wait_idle(deployment)
    assert list(sdk.access_rules(share)) == []
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_access_rule(rule.id)
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)
    assert deployment.installation.problems() == []


def test_sdk_locks_a_share(deployment, sdk):
    share = wait_at_rest(
        sdk, sdk.create_share(share_protocol='NFS', size=1, name=next(_names))
    )
    lock = sdk.create_resource_lock(
        resource_id=share.id, resource_type='share', lock_reason='mounted'
    )
    assert (lock.resource_action, lock.lock_reason) == ('delete', 'mounted')
    with pytest.raises(exceptions.ForbiddenException):
        sdk.delete_share(share)
    lock = sdk.update_resource_lock(lock, lock_reason='in use')
    assert sdk.get_resource_lock(lock.id).lock_reason == 'in use'
    assert [
        one.id for one in sdk.resource_locks(resource_id=share.id, lock_reason='in use')
    ] == [lock.id]
    sdk.delete_resource_lock(lock)
    assert list(sdk.resource_locks(resource_id=share.id)) == []
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)


def test_sdk_transfers_a_share(sdk):
    """By id only: the SDK does not know the key of the items of a list."""
    share = wait_at_rest(
        sdk, sdk.create_share(share_protocol='NFS', size=1, name=next(_names))
    )
    offered = sdk.create_share_transfer(share_id=share.id, name='gift')
    assert sdk.get_share(share.id).status == 'awaiting_transfer'
    shown = sdk.get_share_transfer(offered.id)
    assert (shown.auth_key, shown.accepted) == (None, False)
    sdk.delete_share_transfers(offered)
    assert sdk.get_share(share.id).status == 'available'
    offered = sdk.create_share_transfer(share_id=share.id)
    with pytest.raises(exceptions.BadRequestException):
        sdk.accept_share_transfer(offered.id, auth_key='another key')
    sdk.accept_share_transfer(
        offered.id, auth_key=offered.auth_key, clear_access_rules=True
    )
    assert sdk.get_share(share.id).status == 'available'
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_share_transfer(offered.id)
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)


# Administration


def test_sdk_manages_types_quotas_and_services(deployment, sdk):
    made = sdk.create_share_type(
        name='gold', extra_specs={'driver_handles_share_servers': 'False'}
    )
    sdk.update_share_type_extra_specs(made, tier='1')
    assert sdk.get_share_type(made.id).extra_specs['tier'] == '1'
    sdk.delete_share_type_extra_spec_property(made, 'tier')
    assert 'gold' in [one.name for one in sdk.share_types()]
    sdk.delete_share_type(made)

    sdk.update_quota_set(deployment.project_id, gigabytes=77)
    assert sdk.get_quota_set(deployment.project_id).gigabytes == 77
    assert len(list(sdk.limits())) == 1  # it reads none of the values
    sdk.revert_quota_set(deployment.project_id)
    assert sdk.get_quota_class_set('default').gigabytes == 1000

    host = deployment.installation.service_host()
    assert [one.name for one in sdk.availability_zones()] == ['nova']
    assert [one.name for one in sdk.storage_pools()] == [f'{host}#pool']
    (share_service,) = sdk.services(binary='manila-share')
    sdk.disable_service(share_service, host, 'manila-share')
    (share_service,) = sdk.services(binary='manila-share')
    assert share_service.status == 'disabled'
    sdk.enable_service(share_service, host, 'manila-share')


def test_sdk_shows_instances_and_export_locations(sdk):
    share = wait_at_rest(
        sdk, sdk.create_share(share_protocol='NFS', size=1, name=next(_names))
    )
    (instance,) = [one for one in sdk.share_instances() if one.share_id == share.id]
    assert sdk.get_share_instance(instance).status == 'available'
    locations = list(sdk.export_locations(share.id))
    assert len(locations) == 2
    assert sdk.get_export_location(locations[0].id, share.id).path == locations[0].path
    sdk.reset_share_status(share, 'error')
    assert sdk.get_share(share).status == 'error'
    sdk.delete_share(share, ignore_missing=False)
    sdk.wait_for_delete(share, interval=0.05, wait=30)


def test_sdk_shows_the_message_of_a_failed_share(sdk):
    share = wait_at_rest(
        sdk, sdk.create_share(share_protocol='NFS', size=500, name=next(_names))
    )
    assert share.status == 'error'
    (message,) = [one for one in sdk.user_messages() if one.resource_id == share.id]
    assert 'capacity' in sdk.get_user_message(message).user_message
    sdk.delete_user_message(message)
    assert share.id not in [one.resource_id for one in sdk.user_messages()]
    sdk.delete_share(share)
    sdk.wait_for_delete(share, interval=0.05, wait=30)
