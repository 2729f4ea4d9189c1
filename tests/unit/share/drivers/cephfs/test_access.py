"""What a user of a share may do, tried with the key of the rule."""

import dataclasses
import subprocess

import pytest

from manila_lite import exception
from manila_lite.share.drivers.base import normalise_export_locations
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support
from tests.support.ceph import CALL_SECONDS, PYTHON, ClientError

pytestmark = [ceph_support.limited, ceph_support.on_cluster]

RAW = """
import rados, sys
conf, user, keyring, namespace = sys.argv[1:]
limits = dict.fromkeys(
    ('client_mount_timeout', 'rados_mon_op_timeout', 'rados_osd_op_timeout'), '10'
)
cluster = rados.Rados(
    conffile=conf, rados_id=user, conf={'keyring': keyring, **limits}
)
cluster.connect()
ioctx = cluster.open_ioctx('data')
ioctx.set_namespace(namespace)
for name, act in (
    ('write', lambda: ioctx.write_full('object', b'data')),
    ('read', lambda: ioctx.read('object')),
):
    try:
        act()
        print(name, 'done')
    except rados.Error as error:
        print(name, abs(error.errno))
"""


def raw(cluster, user, key, namespace):
    """Use the objects of a namespace with a key, without the file system."""
    result = subprocess.run(
        [
            *(PYTHON, '-I', '-c', RAW, str(cluster.conf), user),
            *(str(cluster.keyring(user, key)), namespace),
        ],
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=True,
    )
    return dict(line.split() for line in result.stdout.splitlines())


def allow(harness, driver, share, name='10.0.0.1', **values):
    """Allow a user; return the rule and its key."""
    rule = harness.rule(share, name, **values)
    reply = driver.apply_access(CTX, share, [rule], [rule])[rule.id]
    assert reply['state'] == 'active'
    return rule, reply['access_key']


def location(driver, share):
    return normalise_export_locations(driver.create_share(CTX, share))[0]['path']


def test_key_opens_the_objects_of_its_share_only(harness, driver, share, ceph):
    other = harness.share()
    driver.create_share(CTX, other)
    rule, key = allow(harness, driver, share)
    own, foreign = (f'fsvolumens_{one.name}' for one in (share, other))
    user = rule['access_to']
    assert raw(ceph, user, key, own) == {'write': 'done', 'read': 'done'}
    denied = {'write': '1', 'read': '1'}
    for namespace in (foreign, '', 'manila_lite'):
        assert raw(ceph, user, key, namespace) == denied


def test_key_of_a_reader_opens_no_object_for_writing(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share, access_level='ro')
    found = raw(ceph, rule['access_to'], key, f'fsvolumens_{share.name}')
    assert found['write'] == '1'


def test_denied_client_is_cut_off_with_its_open_file(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        with client.writing('log') as log:
            assert log.write(b'one')
            driver.apply_access(CTX, share, [], [], [rule])
            assert not log.write(b'two')
        with pytest.raises(ClientError):
            client.read('notes')
    with (
        pytest.raises(ClientError),
        ceph.mounted(location(driver, share), rule['access_to'], key),
    ):
        pass


def test_eviction_that_was_missed_is_made_when_the_denial_is_repeated(
    harness, driver, share, ceph
):
    """The worker ended after the user had lost the path."""
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        driver.backend.run(
            'subvolume deauthorize', sub_name=share.name, auth_id=rule['access_to']
        )
        driver.apply_access(CTX, share, [], [], [rule])
        with pytest.raises(ClientError):
            client.write('notes', b'late')


def test_client_that_may_only_read_from_now_on_writes_no_more(
    harness, driver, share, ceph
):
    rule, key = allow(harness, driver, share)
    reader = harness.rule(share, '10.0.0.1', id=rule.id, access_level='ro')
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        driver.apply_access(CTX, share, [reader], [], [], [reader])
        with pytest.raises(ClientError):
            client.write('notes', b'late')
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        assert client.read('notes') == b'hello'
        with pytest.raises(ClientError):
            client.write('notes', b'late')


def test_client_sees_the_size_of_its_share(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        assert client.size() == 1
        with pytest.raises(ClientError, match='quota'):
            client.run('truncate -s 1100M big')


@pytest.mark.parametrize('project', ['project', 'another'])
def test_user_of_another_project_is_refused(harness, driver, share, project):
    rule, key = allow(harness, driver, share, '10.0.0.2')
    other = harness.share(project_id=project)
    driver.create_share(CTX, other)
    again = harness.rule(other, '10.0.0.2')
    reply = driver.apply_access(CTX, other, [again], [again])[again.id]
    if project == 'project':
        assert reply == {'state': 'active', 'access_key': key}
    else:
        assert reply['state'] == 'error'
        assert 'already in use' in reply['reason']


@pytest.mark.parametrize('kind', ['administrator', 'other service'])
def test_user_with_another_purpose_is_refused(harness, driver, share, ceph, kind):
    """Its capabilities stay what they are."""
    with ceph.user(mon='allow r') as service:
        user = 'admin' if kind == 'administrator' else service.name
        before = ceph.admin.mon('auth get', entity=f'client.{user}')
        rule = dataclasses.replace(harness.rule(share, 'any'), access_to=user)
        other = harness.rule(share, '10.0.0.3')
        replies = driver.apply_access(CTX, share, [rule, other], [rule, other])
        assert replies[rule.id]['state'] == 'error'
        assert replies[rule.id]['reason']
        assert replies[other.id]['state'] == 'active'
        assert ceph.admin.mon('auth get', entity=f'client.{user}') == before


@pytest.mark.parametrize(
    'values', [{'access_type': 'ip'}, {'access_level': 'unheard-of'}]
)
def test_rule_that_can_never_apply_says_why(harness, driver, share, values):
    rule = harness.rule(share, '10.0.0.4', **values)
    (reply,) = driver.apply_access(CTX, share, [rule], [rule]).values()
    assert reply['state'] == 'error'
    assert reply['reason']


def test_rotated_key_is_in_the_next_reply(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    entity = f'client.{rule["access_to"]}'
    (found,) = ceph.admin.mon('auth get', entity=entity)
    driver.backend.run(
        'subvolume deauthorize', sub_name=share.name, auth_id=rule['access_to']
    )
    assert found['key'] == key
    (reply,) = driver.apply_access(CTX, share, [rule]).values()
    assert reply['access_key'] != key


def test_rules_of_a_subvolume_that_was_removed_are_not_found(harness, driver, share):
    driver.backend.run('subvolume rm', sub_name=share.name)
    rule = harness.rule(share, '10.0.0.5')
    with pytest.raises(exception.ShareResourceNotFound):
        driver.apply_access(CTX, share, [rule], [rule])


def test_users_of_a_deleted_share_are_cut_off(harness, driver, share, ceph):
    rule, key = allow(harness, driver, share)
    with ceph.mounted(location(driver, share), rule['access_to'], key) as client:
        client.write('notes', b'hello')
        driver.delete_share(CTX, share)
        with pytest.raises(ClientError):
            client.write('notes', b'late')
    users = {one['entity'] for one in ceph.admin.mon('auth ls')['auth_dump']}
    assert f'client.{rule["access_to"]}' not in users
