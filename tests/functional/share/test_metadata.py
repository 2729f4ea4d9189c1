"""Some metadata of shares is applied by drivers, later but never lost."""

import itertools

import pytest

from tests.functional.api.metadata_client import request_metadata
from tests.support.cloud import Crash
from tests.support.replicated import ReplicatedCloud

CONF = '[DEFAULT]\ndriver_updatable_metadata = color, shape'
DRIVER = '\nshare_driver = tests.support.remembering_driver.RememberingDriver'


@pytest.fixture
def cloud(build_cloud, database_url):
    cloud = build_cloud(CONF, url=database_url, backends=['alpha'], backend_conf=DRIVER)
    yield cloud
    cloud.check_invariants()


@pytest.fixture
def share(cloud):
    return cloud.create_share(metadata={'color': 'red', 'size': 'big'})


def change(cloud, share, metadata, method='POST'):
    return request_metadata(cloud.api, method, f'/shares/{share}', metadata=metadata)[
        'metadata'
    ]


def applied(cloud, name='alpha'):
    """Return the values of all calls, oldest first."""
    return [values for _, values in cloud.driver(name).applied]


def messages(cloud):
    """Return resource and detail of all messages, oldest first."""
    return [
        (one['action_id'], one['resource_id'], one['detail_id'])
        for one in reversed(cloud.api.get('/messages')['messages'])
    ]


@pytest.mark.parametrize('method', ['POST', 'PUT'])
def test_driver_applies_configured_keys(cloud, share, method):
    values = {'color': 'blue', 'kind': 'none'}
    found = change(cloud, share, values, method)
    assert found == (values if method == 'PUT' else {'size': 'big', **values})
    assert applied(cloud) == []
    cloud.settle()
    assert applied(cloud) == [{'color': 'blue'}]
    assert messages(cloud) == [('027', share, '029')]


@pytest.mark.facts('driver_updatable_metadata.2')
def test_driver_is_not_called_for_other_keys(cloud, share):
    change(cloud, share, {'kind': 'x'})
    change(cloud, share, {'kind': 'y'}, 'PUT')
    cloud.settle()
    assert applied(cloud) == []
    assert messages(cloud) == []


def test_driver_gets_all_configured_keys(cloud, share):
    """A call that has failed before is made up for."""
    change(cloud, share, {'shape': 'round'})
    cloud.settle()
    assert applied(cloud) == [{'color': 'red', 'shape': 'round'}]


def test_changes_before_the_call_are_applied_together(cloud, share):
    for color in ('blue', 'green', 'black'):
        change(cloud, share, {'color': color})
    cloud.settle()
    assert applied(cloud) == [{'color': 'black'}]


def test_change_during_the_call_is_applied_after_it(cloud, share):
    change(cloud, share, {'color': 'blue'})
    cloud.pause_at(
        'before update_share_from_metadata',
        lambda: change(cloud, share, {'color': 'green'}),
    )
    cloud.settle()
    assert applied(cloud) == [{'color': 'blue'}, {'color': 'green'}]


def test_refused_values_are_shown_and_kept(cloud, share):
    change(cloud, share, {'color': 'unknown'})
    cloud.settle()
    assert messages(cloud) == [('027', share, '030')]
    metadata = cloud.api.show(share)['metadata']
    assert metadata == {'color': 'unknown', 'size': 'big'}
    assert cloud.api.show(share)['status'] == 'available'


def test_driver_without_the_method_refuses(build_cloud):
    cloud = build_cloud(CONF)
    share = cloud.create_share()
    change(cloud, share, {'color': 'blue'})
    cloud.settle()
    assert messages(cloud) == [('027', share, '030')]


def test_share_that_is_created_later_has_the_new_values(cloud):
    share = cloud.api.create(metadata={'color': 'red'})['id']
    change(cloud, share, {'color': 'blue'})
    seen = []
    cloud.pause_at('before create_share', lambda: seen.append(True))
    cloud.settle()
    assert seen
    assert applied(cloud) == []
    assert cloud.api.show(share)['metadata'] == {'color': 'blue'}


def test_change_of_a_share_that_is_deleted_is_dropped(cloud, share):
    cloud.api.delete(share)
    change(cloud, share, {'color': 'blue'})
    cloud.settle()
    assert messages(cloud) == []


def test_late_call_of_another_worker_is_made_up_for(build_cloud):
    cloud = build_cloud(
        CONF, backends=['alpha'], backend_conf=f'dummy_driver_fencing = false{DRIVER}'
    )
    share = cloud.create_share(metadata={'color': 'red'})
    change(cloud, share, {'color': 'blue'})
    others = cloud.competing_runners()

    def meanwhile():
        cloud.clock.advance(40)
        change(cloud, share, {'color': 'green'})
        while sum(runner.step() for runner in others):
            pass

    cloud.pause_at('before update_share_from_metadata', meanwhile)
    cloud.settle()
    assert applied(cloud)[-1] == {'color': 'green'}


def test_change_is_applied_after_a_crash_at_any_point(build_cloud):
    cloud = build_cloud(CONF, backends=['alpha'], backend_conf=DRIVER)
    share = cloud.create_share()
    for point in itertools.count():
        change(cloud, share, {'color': f'{point}'})
        driver = cloud.driver()
        cloud.crash_at(point)
        try:
            cloud.settle()
        except Crash:
            cloud.restart()
            cloud.settle()
        else:
            break
        finally:
            cloud.crash_at(None)
        calls = driver.applied + cloud.driver().applied
        assert calls[-1][1] == {'color': f'{point}'}, point
        assert cloud.api.show(share)['status'] == 'available'
    assert point > 10


@pytest.mark.parametrize('style, count', [('readable', 1), ('writable', 2)])
def test_drivers_of_active_replicas_apply_it(build_cloud, style, count):
    cloud = build_cloud(CONF, kind=ReplicatedCloud, style=style, backend_conf=DRIVER)
    share = cloud.create_share_on('alpha')
    cloud.replicate(share)
    change(cloud, share, {'color': 'blue'})
    cloud.settle()
    assert applied(cloud) == [{'color': 'blue'}]
    assert sum(len(applied(cloud, name)) for name in cloud.backend_names) == (count)
