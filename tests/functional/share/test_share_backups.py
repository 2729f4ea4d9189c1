"""Backups of shares, with the content that drivers give to them."""

import pathlib
import shutil

import pytest

from manila_lite import conf as options
from manila_lite.share.drivers.dummy.driver import DummyDriver
from tests.functional.api.conftest import member_of
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


@pytest.mark.facts('LP2125572', 'share-backup.1', 'share-backup.2')
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


def change_a_byte(copy):
    (copy / 'first').write_text('ONE')


@pytest.mark.parametrize('damage', [change_a_byte, shutil.rmtree])
def test_backup_that_lost_its_bytes_breaks_an_invariant(cloud, damage):
    """What simulations check after each of their stories sees it."""
    backup = share_backups.create(cloud)
    cloud.check_invariants()
    (copy,) = pathlib.Path(cloud.conf.backup_folder).glob(f'{backup}.*')
    damage(copy)
    with pytest.raises(AssertionError, match=f'share backup {backup} is'):
        cloud.check_invariants()


@pytest.mark.facts('share-backup.1')
def test_backups_are_listed_renamed_and_deleted(cloud):
    first, second = share_backups.create(cloud), share_backups.create(cloud)
    member = member_of(cloud)
    assert {one['id'] for one in share_backups.listed(member)} == {first, second}
    assert share_backups.show(member, first)['name'] is None
    share_backups.update(member, first, name='tuesday', description='late')
    found = share_backups.show(member, first)
    assert (found['name'], found['description']) == ('tuesday', 'late')
    assert found in share_backups.listed(member)
    share_backups.delete(member, first)
    cloud.settle()
    share_backups.check_gone(member, first)
    assert [one['id'] for one in share_backups.listed(member)] == [second]


@pytest.mark.facts('share-backups.update')
def test_only_name_and_description_change(cloud):
    backup = share_backups.create(cloud)
    before = share_backups.show(cloud.api, backup)
    others = {
        key: 'other'
        for key in before
        if key not in ('name', 'description', 'updated_at')
    }
    assert 'status' in others
    share_backups.update(cloud.api, backup, name='new', **others)
    found = share_backups.show(cloud.api, backup)
    assert found.pop('updated_at') != before.pop('updated_at')
    assert found == before | {'name': 'new'}


@pytest.mark.facts('share-backups.delete', 'share-backups.restore')
@pytest.mark.parametrize(
    'status, deleted, restored',
    [
        ('available', 202, 202),
        ('error', 202, 400),
        ('creating', 400, 400),
        ('deleting', 400, 400),
        ('restoring', 400, 400),
        ('error_deleting', 400, 400),
    ],
)
def test_status_decides_what_may_be_done(cloud, status, deleted, restored):
    for act, code in (
        (share_backups.restore, restored),
        (share_backups.delete, deleted),
    ):
        backup = share_backups.create(cloud)
        share_backups.set_status(cloud, backup, status)
        act(cloud.api, backup, expect=code)
        assert code == 202 or (
            share_backups.show(cloud.api, backup)['status'] == status
        )


@pytest.mark.facts('backup_host_query', 'backup_status_query', 'backup_topic_query')
def test_list_is_filtered(cloud):
    share = cloud.create_share()
    first, second = (share_backups.create(cloud, share) for _ in range(2))
    share_backups.act(cloud.api, second, 'reset_status', {'status': 'error'})
    host = share_backups.show(cloud.api, first)['host']
    assert host
    member = member_of(cloud)
    for query, found, seen_by_member in (
        ('status=error', [second], [second]),
        ('status=available', [first], [first]),
        ('status=deleting', [], []),
        ('topic=manila-data', [second, first], [second, first]),
        ('topic=manila-share', [], [second, first]),
        (f'host={host}', [second, first], [second, first]),
        ('host=nowhere', [], [second, first]),
    ):
        for api, expected in ((cloud.api, found), (member, seen_by_member)):
            listed = share_backups.listed(api, f'?{query}')
            assert [one['id'] for one in listed] == expected, query


@pytest.mark.facts('share-backup-out-of-place')
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
