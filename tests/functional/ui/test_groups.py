"""Share groups on the page, with their snapshots."""

import pytest

from tests.support import share_groups
from tests.support.cloud import TYPE_ID
from tests.support.cloud_images import prepared


@pytest.fixture
def group_type(admin_api):
    return share_groups.create_type(admin_api)


@pytest.fixture
@prepared
def group(cloud, api, group_type):
    answer = share_groups.request(api, group_type, name='pair')
    cloud.settle()
    return answer.json['share_group']['id']


def path(group):
    return f'/ui/groups/{group}'


def act(browser, group, action, expect=200, **fields):
    form = browser.open(path(group)).form(f'{path(group)}/{action}')
    return browser.submit(form, expect=expect, **fields)


def test_group_is_created_and_shown_to_its_project(cloud, group_type, alice, bob, root):
    form = alice.open('/ui/groups').form('/ui/groups')
    page = alice.submit(
        form, name='new <b>', share_group_type_id=group_type, share_type=TYPE_ID
    )
    assert 'The share group is being created.' in page.text
    assert '<b>' not in page.html
    where = alice.address.partition('?')[0]
    cloud.settle()
    assert '✓ available' in alice.open(where).text
    assert 'Host node@' in root.open(where).text
    assert 'node@' not in alice.open(where).text
    assert where in root.open('/ui/groups').links
    assert where not in bob.open('/ui/groups').links
    bob.open(where, expect=404)


def test_refused_group_is_explained_and_keeps_what_was_typed(alice):
    form = alice.open('/ui/groups').form('/ui/groups')
    page = alice.submit(form, expect=400, name='x')
    assert 'share_group_type_id is required' in page.text
    assert page.form('/ui/groups').fields['name'] == 'x'


def test_share_is_created_in_a_group_and_deleted(cloud, group, alice):
    form = alice.open('/ui/shares').form('/ui/shares')
    alice.submit(form, name='part', size='1', share_proto='NFS')
    alice.submit(form, name='part', size='1', share_proto='NFS', share_group_id=group)
    share = alice.address.partition('?')[0]
    cloud.settle()
    assert share in alice.open(path(group)).links
    assert alice.open(path(group)).links.count(share) == 1
    page = alice.open(share)
    alice.submit(page.form(f'{share}/delete'), confirm='part')
    cloud.settle()
    alice.open(share, expect=404)


def test_group_is_snapshotted_copied_and_its_snapshot_deleted(
    cloud, group, admin_api, alice
):
    admin_api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'create_share_from_snapshot_support': 'True'}},
        expect=200,
    )
    form = alice.open('/ui/shares').form('/ui/shares')
    fields = {'size': '1', 'share_proto': 'NFS', 'share_group_id': group}
    alice.submit(form, name='part', **fields)
    cloud.settle()
    page = act(alice, group, 'snapshot-group', name='before')
    assert 'The snapshot of the share group is being taken.' in page.text
    cloud.settle()
    assert 'before ✓ available 1' in alice.open(path(group)).text
    page = act(alice, group, 'copy-group', name='twin')
    assert 'Share group twin' in page.text
    twin = alice.address.partition('?')[0]
    assert twin != path(group)
    cloud.settle()
    assert '✓ available' in alice.open(twin).text
    act(alice, group, 'delete-group-snapshot', 400, confirm='before')
    act(alice, group, 'delete-group-snapshot', confirm='pair')
    cloud.settle()
    assert 'before' not in alice.open(path(group)).text


def test_form_of_a_group_does_not_reach_the_snapshot_of_another(
    cloud, api, group, group_type, alice
):
    other = share_groups.request(api, group_type, name='other')
    cloud.settle()
    of_other = share_groups.request_snapshot(api, other.json['share_group']['id']).json[
        'share_group_snapshot'
    ]['id']
    cloud.settle()
    act(alice, group, 'snapshot-group', name='own')
    cloud.settle()
    page = act(
        alice,
        group,
        'delete-group-snapshot',
        404,
        confirm='pair',
        group_snapshot_id=of_other,
    )
    assert f'The share group has no snapshot {of_other}.' in page.text
    share_groups.show_snapshot(api, of_other)


def test_statuses_are_set_by_administrators(cloud, group, alice, root):
    act(alice, group, 'snapshot-group', name='before')
    cloud.settle()
    text = alice.open(path(group)).text
    assert text.count('Set the status: not possible. Policies') == 2
    page = act(root, group, 'reset-group-snapshot', confirm='pair', status='error')
    assert 'The status of the snapshot has been set.' in page.text
    page = act(root, group, 'reset-status', confirm='pair', status='deleting')
    assert 'The status has been set.' in page.text
    text = alice.open(path(group)).text
    assert 'before ✗ error' in text
    assert 'Delete the share group: not possible. The share group is' in text


def test_group_is_deleted_by_its_name(cloud, group, alice):
    act(alice, group, 'delete', 400, confirm='')
    page = act(alice, group, 'delete', confirm='pair')
    assert 'The share group is being deleted.' in page.text
    cloud.settle()
    alice.open(path(group), expect=404)


def test_name_and_description_are_changed(group, alice):
    page = act(alice, group, 'update', name='two', description='of them')
    assert 'Share group two' in page.text
    assert 'Description of them' in page.text


def test_groups_are_found_by_name_and_status(group, alice):
    assert path(group) in alice.open('/ui/groups?name~=ai').links
    assert 'no such share groups' in alice.open('/ui/groups?name~=x').text
    assert 'no such share groups' in alice.open('/ui/groups?status=error').text
