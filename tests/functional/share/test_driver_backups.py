"""Backups that the driver of a share makes and keeps."""

import pytest

from manila_lite.share.drivers import base
from manila_lite.share.drivers.dummy.driver import DummyDriver
from tests.support import rescues, share_backups
from tests.support.share_backups import BY_DRIVER

POLLS = (
    'create_backup',
    'create_backup_continue',
    'restore_backup',
    'restore_backup_continue',
)


class HomeDriver(DummyDriver):
    """It restores backups only to the share that they were made from."""

    restore_to_target_support = False


@pytest.fixture
def build(build_cloud):
    def build(backends=('alpha',), **options):
        return build_cloud(
            backends=list(backends),
            extra_conf=share_backups.SHORT_POLL_INTERVALS,
            **options,
        )

    return build


@pytest.fixture
def cloud(build):
    cloud = build()
    yield cloud
    cloud.check_invariants()


def instance_of(cloud, share):
    (instance,) = cloud.api.get(f'/shares/{share}/instances')['share_instances']
    return instance['id']


def write(cloud, share, content):
    cloud.driver().write(instance_of(cloud, share), content)


def read(cloud, share):
    return cloud.driver().read(instance_of(cloud, share))


def status(cloud, share):
    return cloud.api.show(share)['status']


def back_up(cloud, share, **body):
    return share_backups.create(cloud, share, **BY_DRIVER | body)


def request(cloud, share, expect=202, **body):
    answer = share_backups.request(cloud.api, share, expect, **body)
    return answer.json['share_backup']['id'] if expect == 202 else answer


def message(cloud):
    (found,) = cloud.api.get('/messages')['messages']
    return found


def test_options_leave_a_backup_to_the_driver(cloud):
    share = cloud.create_share()
    write(cloud, share, 'then')
    backup = back_up(cloud, share)
    shown = share_backups.show(cloud.api, backup)
    assert shown['backup_type'] == 'vault'
    assert shown['topic'] == 'manila-share'
    assert shown['host'] == 'node@alpha#pool'
    assert shown['progress'] == '100'
    assert 'backup_options' not in shown
    assert cloud.driver().backup_inventory() == {backup: 100}
    write(cloud, share, 'now')
    share_backups.restore(cloud.api, backup)
    assert status(cloud, share) == 'backup_restoring'
    cloud.settle()
    assert read(cloud, share) == 'then'
    assert status(cloud, share) == 'available'
    assert cloud.api.show(share)['source_backup_id'] == backup
    share_backups.delete(cloud.api, backup)
    cloud.settle()
    share_backups.check_gone(cloud.api, backup)
    assert cloud.driver().backup_inventory() == {}


@pytest.mark.parametrize('options', [None, {}])
def test_without_options_the_data_service_makes_a_backup(cloud, options):
    share = cloud.create_share()
    backup = share_backups.create(cloud, share, backup_options=options)
    shown = share_backups.show(cloud.api, backup)
    assert (shown['topic'], shown['backup_type']) == ('manila-data', None)
    assert cloud.driver().backup_inventory() == {}


def test_driver_gets_the_options_in_every_call(cloud):
    share, given = cloud.create_share(), []
    driver = cloud.driver()
    for method in (*POLLS, 'delete_backup'):
        watch(driver, method, given)
    options = {'backup_type': 'vault', 'keep': {'days': 7}}
    backup = share_backups.create(cloud, share, name='monday', backup_options=options)
    share_backups.restore(cloud.api, backup)
    cloud.settle()
    share_backups.delete(cloud.api, backup)
    cloud.settle()
    assert len(given) == 5
    for one in given:
        assert one['backup_options'] == options
        assert one['name'] == f'share-backup-{backup}'
        assert one['display_name'] == 'monday'
        assert one['share_id'] == share


def watch(driver, method, given):
    """Note the backup that a method of the driver gets."""
    original = getattr(driver, method)

    def call(*args):
        given.extend(one for one in args if isinstance(one, base.ShareBackupForDriver))
        return original(*args)

    setattr(driver, method, call)


@pytest.mark.facts('LP2125572')
def test_progress_is_polled_at_the_interval(build):
    cloud = build(backend_conf='dummy_driver_backup_steps = 4')
    share = cloud.create_share()
    backup = request(cloud, share, **BY_DRIVER)
    cloud.run_pending()
    assert progress(cloud, backup, 'progress') == '25'
    cloud.run_pending()
    assert progress(cloud, backup, 'progress') == '25'
    cloud.clock.advance(5)
    cloud.run_pending()
    assert progress(cloud, backup, 'progress') == '50'
    assert status(cloud, share) == 'backup_creating'
    cloud.settle()
    assert progress(cloud, backup, 'progress') == '100'
    share_backups.restore(cloud.api, backup)
    cloud.run_pending()
    assert progress(cloud, backup, 'restore_progress') == '25'
    cloud.settle()
    assert progress(cloud, backup, 'restore_progress') == '100'


def progress(cloud, backup, name):
    return share_backups.show(cloud.api, backup)[name]


def test_backup_is_restored_to_another_share_of_the_back_end(cloud):
    share, other = cloud.create_share(), cloud.create_share()
    write(cloud, share, 'then')
    backup = back_up(cloud, share)
    share_backups.restore(cloud.api, backup, other)
    assert status(cloud, share) == 'available'
    cloud.settle()
    assert read(cloud, other) == 'then'
    assert cloud.api.show(other)['source_backup_id'] == backup


def test_share_on_another_back_end_is_refused(build):
    cloud = build(backends=('alpha', 'beta'))
    shares = [cloud.create_share() for _ in range(6)]
    hosts = {share: cloud.api.show(share)['host'] for share in shares}
    share = shares[0]
    other = next(one for one in shares if hosts[one] != hosts[share])
    backup = back_up(cloud, share)
    refused = share_backups.restore(cloud.api, backup, other, expect=400)
    assert (
        'is not on the back end that keeps' in (refused.json['badRequest']['message'])
    )
    assert status(cloud, other) == 'available'
    assert share_backups.show(cloud.api, backup)['status'] == 'available'


def test_driver_that_cannot_restore_elsewhere_says_so(build):
    cloud = build(backend_conf=f'share_driver = {__name__}.HomeDriver')
    share, other = cloud.create_share(), cloud.create_share()
    backup = back_up(cloud, share)
    share_backups.restore(cloud.api, backup, other)
    cloud.settle()
    assert status(cloud, other) == 'backup_restoring_error'
    assert share_backups.show(cloud.api, backup)['status'] == 'available'
    assert (message(cloud)['action_id'], message(cloud)['detail_id']) == ('028', '032')
    share_backups.restore(cloud.api, backup)
    cloud.settle()
    assert status(cloud, share) == 'available'


def test_driver_without_backups_refuses_them(build, tmp_path):
    cloud = build(
        backend_conf=f'share_driver = local\nlocal_root = {tmp_path}/shares',
        prepared=False,  # its database has the path of the shares
    )
    share = cloud.create_share()
    backup = request(cloud, share, **BY_DRIVER)
    cloud.settle()
    assert share_backups.show(cloud.api, backup)['status'] == 'error'
    assert status(cloud, share) == 'available'
    assert 'makes no backups itself' in message(cloud)['user_message']
    assert message(cloud)['resource_id'] == share


@pytest.mark.parametrize('method', POLLS[:2])
def test_backup_that_fails_leaves_the_share_available(cloud, method):
    share = cloud.create_share()
    cloud.driver().fail_next(method)
    backup = request(cloud, share, **BY_DRIVER)
    cloud.settle()
    assert share_backups.show(cloud.api, backup)['status'] == 'error'
    assert status(cloud, share) == 'available'
    assert message(cloud)['action_id'] == '002'
    share_backups.delete(cloud.api, backup)
    cloud.settle()
    assert cloud.driver().backup_inventory() == {}


@pytest.mark.parametrize('method', POLLS[2:])
def test_restore_that_fails_shows_that_in_the_share(cloud, method):
    share = cloud.create_share()
    backup = back_up(cloud, share)
    cloud.driver().fail_next(method)
    share_backups.restore(cloud.api, backup)
    cloud.settle()
    assert status(cloud, share) == 'backup_restoring_error'
    assert share_backups.show(cloud.api, backup)['status'] == 'available'
    assert message(cloud)['action_id'] == '028'
    share_backups.restore(cloud.api, backup)
    cloud.settle()
    assert status(cloud, share) == 'available'


def test_deletion_that_fails_is_shown(cloud):
    backup = back_up(cloud, cloud.create_share())
    cloud.driver().fail_next('delete_backup')
    share_backups.delete(cloud.api, backup)
    cloud.settle()
    assert share_backups.show(cloud.api, backup)['status'] == 'error_deleting'
    assert message(cloud)['action_id'] == '007'


@pytest.mark.parametrize('reply', [None, {}, {'total_progress': 'much'}])
def test_reply_without_progress_fails_the_backup(cloud, reply):
    share = cloud.create_share()
    cloud.driver().create_backup_continue = lambda *args: reply
    backup = request(cloud, share, **BY_DRIVER)
    cloud.settle()
    assert share_backups.show(cloud.api, backup)['status'] == 'error'


def test_backups_of_a_share_have_one_type(cloud):
    share = cloud.create_share()
    backup = back_up(cloud, share)
    for options in (None, {'backup_type': 'tape'}, {'keep': '7'}):
        refused = request(cloud, share, 400, backup_options=options)
        assert 'backup_type' in refused.json['badRequest']['message']
        assert status(cloud, share) == 'available'
    back_up(cloud, share)
    for one in share_backups.listed(cloud.api):
        share_backups.delete(cloud.api, one['id'])
    cloud.settle()
    share_backups.check_gone(cloud.api, backup)
    share_backups.create(cloud, share)


@pytest.mark.parametrize('type', [7, '', 'x' * 33, ['vault']])
def test_invalid_type_is_refused_by_its_name(cloud, type):
    share = cloud.create_share()
    refused = request(cloud, share, 400, backup_options={'backup_type': type})
    assert 'backup_type' in refused.json['badRequest']['message']


def test_backup_reset_while_it_is_made_releases_the_share(build):
    cloud = build(backend_conf='dummy_driver_backup_steps = 4')
    share = cloud.create_share()
    backup = request(cloud, share, **BY_DRIVER)
    cloud.run_pending()
    share_backups.act(cloud.api, backup, 'reset_status', {'status': 'error'})
    cloud.settle()
    assert status(cloud, share) == 'available'
    share_backups.delete(cloud.api, backup)
    cloud.settle()
    assert cloud.driver().backup_inventory() == {}
    cloud.check_invariants()


@pytest.mark.parametrize('in_flight', ['creating', 'restoring', 'deleting'])
def test_rescue_goes_to_the_back_end_that_keeps_the_backup(cloud, in_flight):
    share = cloud.create_share()
    backup = back_up(cloud, share)
    rescues.force_status(cloud.db, 'share_backup', backup, in_flight)
    cloud.settle()
    if in_flight == 'deleting':
        share_backups.check_gone(cloud.api, backup)
    else:
        shown = share_backups.show(cloud.api, backup)
        assert shown['status'] == 'available'
    assert not (cloud.folder / 'backups').exists()


def test_a_share_with_a_backup_is_not_deleted_after_a_reset(cloud):
    share = cloud.create_share()
    share_backups.create(cloud, share, **share_backups.BY_DRIVER)
    cloud.api.act(share, 'reset_status', {'status': 'deleting'})
    cloud.settle()
    assert cloud.api.show(share)['status'] == 'error_deleting'
    assert len(cloud.driver().inventory()) == 1
    cloud.api.act(share, 'reset_status', {'status': 'available'})
    cloud.check_invariants()


def test_backup_that_is_given_up_while_it_begins_is_removed_by_its_worker(cloud):
    """The deletion may have asked the driver already, and does not see it."""
    share = cloud.create_share()
    backup = request(cloud, share, **BY_DRIVER)
    others = cloud.competing_runners()

    def meanwhile():
        share_backups.act(cloud.api, backup, 'reset_status', {'status': 'deleting'})
        cloud.clock.advance(40)  # the lease is over
        while sum(runner.step() for runner in others):
            pass

    cloud.pause_at('before create_backup', meanwhile)
    while cloud.pending_pauses:
        cloud.step()
    assert share_backups.show(cloud.api, backup)['status'] == 'deleting'
    assert cloud.driver().backup_inventory() == {}
    cloud.settle()
    share_backups.check_gone(cloud.api, backup)
