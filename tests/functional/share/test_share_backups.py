"""Backups of shares, with the content that drivers give to them."""

import pytest

from manila_lite import conf as options
from manila_lite.share.drivers.dummy.driver import DummyDriver
from tests.support import share_backups
from tests.support.cloud import Cloud


class FarDriver(DummyDriver):
    """The content of its shares is on no machine of ours."""

    def connection_get_info(self, context, share, share_server=None):
        raise NotImplementedError


@pytest.fixture
def cloud(tmp_path):
    return Cloud(tmp_path, backends=['alpha'])


def show(cloud, share):
    return cloud.api.show(share)


def test_unknown_backup_driver_is_refused_at_the_start(tmp_path):
    name = 'manila.data.drivers.nfs.NFSBackupDriver'
    with pytest.raises(options.BadConfiguration) as refused:
        Cloud(tmp_path, extra_conf=f'backup_driver = {name}')
    assert str(refused.value) == (
        f'backup_driver {name} cannot be used: known are folder'
    )


def test_content_out_of_reach_is_explained_to_administrators(build_cloud):
    cloud = build_cloud(
        backends=['alpha'], backend_conf=f'share_driver = {__name__}.FarDriver'
    )
    share = cloud.create_share()
    backup = share_backups.request(cloud.api, share).json['share_backup']
    cloud.settle()
    assert share_backups.show(cloud.api, backup['id'])['status'] == 'error'
    assert show(cloud, share)['status'] == 'available'
    [message] = cloud.api.get('/messages')['messages']
    assert message['resource_id'] == share
    assert 'its driver does not offer it' in message['user_message']


def test_a_share_is_backed_up_and_restored(cloud):
    share = cloud.create_share()
    answer = share_backups.request(cloud.api, share, name='monday')
    found = answer.json['share_backup']
    assert (found['status'], found['progress']) == ('creating', '0')
    assert show(cloud, share)['status'] == 'backup_creating'
    cloud.settle()
    found = share_backups.show(cloud.api, found['id'])
    assert (found['status'], found['progress']) == ('available', '100')
    assert show(cloud, share)['status'] == 'available'
    assert share_backups.restore(cloud.api, found['id']).json == {
        'restore': {'backup_id': found['id'], 'share_id': share}
    }
    assert show(cloud, share)['status'] == 'backup_restoring'
    cloud.settle()
    found = share_backups.show(cloud.api, found['id'])
    assert (found['status'], found['restore_progress']) == ('available', '100')
    assert show(cloud, share)['status'] == 'available'
    assert show(cloud, share)['source_backup_id'] == found['id']


def test_a_backup_is_restored_to_another_share(cloud):
    backup = share_backups.create(cloud)
    other = cloud.create_share()
    share_backups.restore(cloud.api, backup, other)
    cloud.settle()
    assert show(cloud, other)['source_backup_id'] == backup


def test_a_smaller_share_is_refused(cloud):
    backup = share_backups.create(cloud, cloud.create_share(size=2))
    other = cloud.create_share(size=1)
    share_backups.restore(cloud.api, backup, other, expect=400)
    assert show(cloud, other)['status'] == 'available'
    assert share_backups.show(cloud.api, backup)['status'] == 'available'


def test_a_share_with_a_backup_is_not_deleted(cloud):
    share = cloud.create_share()
    backup = share_backups.create(cloud, share)
    cloud.api.request('DELETE', f'/shares/{share}', expect=403)
    share_backups.delete(cloud.api, backup)
    cloud.settle()
    share_backups.check_gone(cloud.api, backup)
    assert list((cloud.folder / 'backups').iterdir()) == []
    cloud.api.request('DELETE', f'/shares/{share}', expect=202)


def test_of_two_requests_one_is_accepted(cloud):
    share = cloud.create_share()
    share_backups.request(cloud.api, share)
    share_backups.request(cloud.api, share, expect=400)


def test_a_restore_that_fails_shows_that_in_the_share(cloud):
    share = cloud.create_share()
    backup = share_backups.create(cloud, share)
    [kept] = (cloud.folder / 'backups').iterdir()
    kept.rename(cloud.folder / 'away')
    share_backups.restore(cloud.api, backup)
    cloud.settle()
    assert show(cloud, share)['status'] == 'backup_restoring_error'
    assert share_backups.show(cloud.api, backup)['status'] == 'available'
    [message] = cloud.api.get('/messages')['messages']
    assert message['action_id'] == '028'
    assert message['resource_id'] == share
    (cloud.folder / 'away').rename(kept)
    share_backups.restore(cloud.api, backup)
    cloud.settle()
    assert show(cloud, share)['status'] == 'available'
