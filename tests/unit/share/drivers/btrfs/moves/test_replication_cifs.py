"""Replicas of CIFS shares, as smbclient sees them."""

import contextlib
import threading

import pytest

from manila_lite.share.drivers.btrfs.catalog import Kind
from tests.drivers.cifs_replication_sites import CifsSites
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_sites import CLIENT, btrfs_sites
from tests.support import sampling
from tests.support.processes import wait_until
from tests.support.smb_client import PASSWORD, SmbError

LOST = 'NETWORK_NAME_DELETED|FILE_CLOSED|CONNECTION_|USER_SESSION_DELETED'
NO_SHARE = 'BAD_NETWORK_NAME'
pytestmark = sampling.suite('readable CIFS shares as clients see them', 4)
_SAMPLED = sampling.suite('replicated CIFS shares as clients see them', 2)


@pytest.fixture(
    params=[
        'readable',
        pytest.param('dr', marks=_SAMPLED),
        pytest.param('readable-on-servers', marks=_SAMPLED),
    ]
)
def sites(request):
    style, _, with_servers = request.param.partition('-')
    with btrfs_sites(style, bool(with_servers), CifsSites) as sites:
        yield sites


def refused(status):
    return pytest.raises(SmbError, match=f'NT_STATUS_({status})')


def name_on(site):
    return f'share-{site.id}'


def volume(sites, site):
    pool, record = site.driver.backend.get_share(name_on(site))
    return pool.path(Kind.SHARE, record['volume'])


def test_users_read_a_readable_replica_and_see_no_other(sites):
    name, user = name_on(sites.there), sites.user(sites.there)
    sites.write('one')
    sites.create_in_sync()
    if sites.style == 'dr':
        with refused(NO_SHARE):
            user(name, 'ls')
        return
    assert user.read(name, 'notes') == b'one'
    with refused('ACCESS_DENIED|MEDIA_WRITE_PROTECTED'):
        user.write(name, 'notes', b'no')
    with user.session(name) as session:
        assert sites.update() == 'in_sync'
        session('get notes /dev/null')  # there was nothing new
        sites.write('two')
        assert sites.update() == 'in_sync'
        with refused(LOST):
            session('get notes /dev/null')
    assert user.read(name, 'notes') == b'two'


def test_clients_of_the_active_replica_lose_it_with_the_promotion(sites):
    sites.create_in_sync()
    here, there = sites.user(sites.here), sites.user(sites.there)
    with here.session(name_on(sites.here)) as session:
        session('put /etc/hostname early')
        sites.promote()
        with refused(LOST):
            session('put /etc/hostname late')
    assert there.names(name_on(sites.there)) == {'early'}
    there.write(name_on(sites.there), 'notes', b'new')
    with refused(f'{NO_SHARE}|ACCESS_DENIED|MEDIA_WRITE_PROTECTED'):
        here.write(name_on(sites.here), 'notes', b'no')


def test_no_acknowledged_write_is_lost_by_a_promotion(sites):
    sites.create_in_sync()
    user, acknowledged = sites.user(sites.here), []

    def write(session):
        with contextlib.suppress(SmbError):
            while True:
                name = f'file-{len(acknowledged)}'
                session(f'put /etc/hostname {name}')
                acknowledged.append(name)

    with user.session(name_on(sites.here)) as session:
        thread = threading.Thread(target=write, args=(session,))
        thread.start()
        wait_until(lambda: len(acknowledged) > 5, 'it has written')
        sites.promote()
        thread.join(60)
        assert not thread.is_alive()
    assert set(acknowledged) <= sites.user(sites.there).names(name_on(sites.there))


def test_clients_of_a_readable_replica_connect_again_to_write(sites):
    if sites.style == 'dr':
        pytest.skip('no client is connected before')
    sites.write('one')
    sites.create_in_sync()
    with sites.user(sites.there).session(name_on(sites.there)) as session:
        sites.promote()
        with refused(LOST):  # so that the client connects again
            session('put /etc/hostname late')
    sites.user(sites.there).write(name_on(sites.there), 'notes', b'two')


@contextlib.contextmanager
def out_of_reach(site):
    """Let others not find a back end whose daemons go on."""
    root = site.driver.backend.root
    away = root.with_name(f'{root.name}.away')
    site.is_unreachable = True
    root.rename(away)
    try:
        yield
    finally:
        away.rename(root)
        site.is_unreachable = False


def test_clients_of_a_replaced_replica_lose_it_when_it_is_back(sites):
    sites.create_in_sync()
    user, name = sites.user(sites.here), name_on(sites.here)
    with user.session(name) as session:
        session('put /etc/hostname early')
        with out_of_reach(sites.here):
            sites.promote()
        sites.here.restart()
        with refused(LOST):
            session('put /etc/hostname late')
    with refused(NO_SHARE):
        user(name, 'ls')
    assert sites.update(sites.here) == 'in_sync'
    assert not (volume(sites, sites.here) / 'early').exists()


def test_rule_for_a_user_that_one_side_lacks_is_refused_there(sites):
    sites.users_of(sites.here).add('carol', PASSWORD)
    sites.create_in_sync()
    rule = sites.rule('carol')
    replies = [
        site.driver.update_access(CTX, sites.share_for(site), [rule], [], [], [])[
            rule['access_id']
        ]
        for site in (sites.here, sites.there)
    ]
    assert [reply['state'] for reply in replies] == ['active', 'error']
    assert 'no such user' in replies[1]['reason']


def test_snapshot_is_mounted_from_where_users_may_read(sites):
    sites.write('one')
    sites.create_in_sync()
    id = sites.snapshot()
    while sites.snapshots[id][0]['there'] == 'creating':
        sites.update_snapshot(id)
    sites.write('two')
    for promoted in (False, True):
        if promoted:
            sites.promote()
        for site in sites.sites:
            snapshot = sites.instance(id, site)
            site.driver.snapshot_update_access(CTX, snapshot, sites.rules, [], [])
            user, name = sites.user(site), f'snapshots.{snapshot.name}'
            if sites.style == 'readable' or site is sites.active:
                assert user.read(name, 'notes') == b'one'
                with refused('ACCESS_DENIED|MEDIA_WRITE_PROTECTED'):
                    user.write(name, 'notes', b'no')
            else:
                with refused(NO_SHARE):
                    user(name, 'ls')


def test_other_shares_of_the_back_ends_go_on(sites):
    other = sites.here.harness.share(host=sites.here.host)
    sites.here.driver.create_share(CTX, other, share_server=sites.here.server)
    sites.here.driver.update_access(
        CTX, other, [sites.here.harness.rule(other, CLIENT)], [], [], []
    )
    user = sites.user(sites.here)
    sites.create_in_sync()
    with user.session(other.name) as session:
        sites.promote()
        sites.update(sites.here)
        sites.promote(sites.here)
        session('put /etc/hostname after')
    sites.here.driver.delete_share(CTX, other, sites.here.server)


def test_statistics_have_both_protocols_and_the_replication_type(sites):
    for site in sites.sites:
        stats = site.driver.get_share_stats(refresh=True)
        assert stats['storage_protocol'] == 'NFS_CIFS'
        assert stats['replication_type'] == sites.style
