"""Shares on CephFS by NFS, through two gateways."""

import contextlib
import json
import os
import signal
import sys
import time

import pytest

from manila_lite import exception
from manila_lite.share.drivers.cephfs import exports
from manila_lite.share.drivers.cephfs.backend import CephfsBackend, cluster_as
from manila_lite.share.drivers.cephfs.cluster import GATEWAYS
from manila_lite.share.drivers.cephfs.exports import EXPORT
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.ceph_harness import CephNfsHarness
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support, file_handles, sampling
from tests.support.nfs_client import NfsError
from tests.support.nfs_gateways import in_time
from tests.support.processes import wait_until

pytestmark = [
    ceph_support.limited,
    sampling.suite('NFS gateways of the cephfs driver', 3),
]

restarts = sampling.suite('NFS gateways that are started again', 1)
"""Marks those that wait until clients have reclaimed what they had open."""

OPEN_SHARES = 4
CHANGING_ACCESS = 'authorize', 'deauthorize', 'evict'
WRITER, READER, STRANGER = '127.0.0.2', '127.0.0.3', '127.0.0.4'


@pytest.fixture
def harness(gateways):
    with served_by(gateways) as harness:
        yield harness


@contextlib.contextmanager
def served_by(gateways):
    """Provide the back end of gateways; remove its shares."""
    configuration = Configuration.from_values(gateways.options)
    harness = CephNfsHarness('cephfs', lambda: configuration)
    harness.gateways = gateways
    yield harness
    with contextlib.suppress(exception.DriverError):
        harness.clean_up()


class Shared:
    """A share with a client that writes and one that reads."""

    def __init__(self, harness, driver):
        self.driver = driver
        self.share = harness.share()
        self.locations = driver.create_share(CTX, self.share)
        self.path = driver.backend.get_share(self.share)['path']
        self.writer = harness.rule(self.share, WRITER)
        self.reader = harness.rule(self.share, READER, access_level='ro')
        rules = [self.writer, self.reader]
        driver.apply_access(CTX, self.share, rules, rules)

    def write(self, gateway, name: str, data: bytes, address=WRITER):
        with contextlib.closing(gateway.client(address)) as client:
            in_time(lambda: client.write(self.path, name, data))

    def read(self, gateway, name: str, address=READER) -> bytes:
        with contextlib.closing(gateway.client(address)) as client:
            return in_time(lambda: client.read(self.path, name))

    def users(self) -> set[str]:
        found = self.driver.backend.cluster.mon('auth ls')['auth_dump']
        return {one['entity'] for one in found if self.share.name in one['entity']}

    def export(self):
        return self.driver.backend.records.get(EXPORT + self.share.name)


@pytest.fixture
def shared(harness, driver):
    return Shared(harness, driver)


def test_clients_of_all_gateways_see_the_same_files(shared, gateways):
    one, two = gateways.each
    shared.write(one, 'notes', b'hello' * 1000)
    assert shared.read(two, 'notes') == b'hello' * 1000
    shared.write(two, 'notes', b'world')
    assert shared.read(one, 'notes')[:5] == b'world'
    with pytest.raises(NfsError, match='ROFS'):
        shared.write(two, 'notes', b'no', READER)
    with pytest.raises(NfsError, match='NOENT'):
        shared.read(two, 'notes', STRANGER)


def test_locations_are_those_of_all_gateways_and_one_is_preferred(harness, driver):
    preferred = set()
    for _ in range(12):
        share = harness.share()
        locations = driver.backend.export_locations('NFS', f'/volumes/g/{share.name}')
        hosts = {one['path'].partition(':/')[0]: one['metadata'] for one in locations}
        assert hosts.keys() == set(harness.gateways.options['cephfs_nfs_gateways'])
        (one,) = [
            host for host, values in hosts.items() if values['preferred'] == 'True'
        ]
        preferred.add(one)
    assert len(preferred) == 2


def test_address_that_moves_is_preferred_to_those_of_gateways(ceph):
    addresses = {'cephfs_nfs_virtual_addresses': ['192.0.2.8', '192.0.2.9']}
    gateways = {'cephfs_nfs_gateways': ['192.0.2.1', '192.0.2.2']}
    options = Configuration.from_values(ceph.options(**gateways, **addresses))
    backend = CephfsBackend(options, time.time, time.sleep)
    preferred = set()
    for number in range(12):
        locations = backend.export_locations('NFS', f'/volumes/g/{number}')
        hosts = [one['path'].partition(':/')[0] for one in locations]
        assert set(hosts[:2]) == {'192.0.2.8', '192.0.2.9'}
        assert set(hosts[2:]) == {'192.0.2.1', '192.0.2.2'}
        assert [one['metadata']['preferred'] for one in locations].count('True') == 1
        preferred.add(hosts[0])
    assert len(preferred) == 2


@restarts
def test_client_whose_address_moves_opens_its_file_by_the_handle_that_it_has(
    shared, gateways
):
    one, two = gateways.each
    with contextlib.closing(one.client(WRITER)) as client:
        folder = client.look_up(shared.path)
        file = open_and_write(client, shared, b'one')
        one.kill()
    commands_until_evicted(shared.driver)
    with contextlib.closing(two.client(WRITER)) as client:
        with pytest.raises(NfsError, match='STATEID'):
            client.write_at(file, 0, b'lost')
        again = in_time(lambda: client.open_below(folder, 'log', create=True))
        assert again.handle == file.handle
        client.write_at(again, 3, b' two')
    assert shared.read(two, 'log') == b'one two'
    one.start()
    one.wait()


def test_denied_client_loses_its_open_file_and_others_go_on(shared, gateways):
    one, two = gateways.each
    shared.write(one, 'notes', b'hello')
    with contextlib.closing(one.client(WRITER)) as client:
        file = in_time(lambda: client.open(shared.path, 'log', create=True))
        client.write_at(file, 0, b'one')
        shared.driver.apply_access(
            CTX, shared.share, [shared.reader], [], [shared.writer]
        )
        with pytest.raises(NfsError, match='ACCESS'):
            client.write_at(file, 0, b'two')
    for gateway in (one, two):
        assert shared.read(gateway, 'log') == b'one'
        with pytest.raises(NfsError, match='NOENT'):
            shared.read(gateway, 'log', WRITER)


def test_share_without_rules_has_no_export_and_no_user(shared, gateways):
    shared.write(gateways.each[0], 'notes', b'hello')
    assert len(shared.users()) == 2
    shared.driver.apply_access(
        CTX, shared.share, [], [], [shared.writer, shared.reader]
    )
    assert not shared.users()
    assert shared.export() is None
    for gateway in gateways.each:
        with pytest.raises(NfsError, match='NOENT'):
            shared.read(gateway, 'notes')


def test_deleted_share_is_not_exported_and_has_no_user(shared, gateways):
    shared.write(gateways.each[0], 'notes', b'hello')
    shared.driver.delete_share(CTX, shared.share)
    assert not shared.users()
    assert shared.export() is None
    for gateway in gateways.each:
        with pytest.raises(NfsError, match='NOENT'):
            shared.read(gateway, 'notes')


def test_client_is_denied_though_a_gateway_is_paused(shared, gateways, monkeypatch):
    """Its NFS server goes on, and would let the client write for ever."""
    monkeypatch.setattr(exports, 'APPLY_SECONDS', 3.0)
    one, two = gateways.each
    shared.write(two, 'notes', b'hello')
    with contextlib.closing(one.client(WRITER)) as client:
        file = in_time(lambda: client.open(shared.path, 'log', create=True))
        client.write_at(file, 0, b'one')
        with one.paused():
            shared.driver.apply_access(
                CTX, shared.share, [shared.reader], [], [shared.writer]
            )
            with pytest.raises((NfsError, TimeoutError)):
                client.write_at(file, 0, b'two')
            assert shared.read(two, 'log') == b'one'
    # It is let in again when it answers, to the clients of now.
    wait_until(lambda: is_let_in(shared, one), 'it serves the share again', 30)
    assert shared.read(one, 'log') == b'one'
    with pytest.raises(NfsError, match='NOENT'):
        shared.read(one, 'log', WRITER)


def test_eviction_that_was_missed_is_made_when_the_denial_is_repeated(shared, gateways):
    """The worker ended after the gateway, which hangs, had lost the path."""
    one = gateways.each[0]
    with contextlib.closing(one.client(WRITER)) as client:
        file = in_time(lambda: client.open(shared.path, 'log', create=True))
        client.write_at(file, 0, b'one')
        with one.paused():
            shared.driver.backend.run(
                'subvolume deauthorize',
                sub_name=shared.share.name,
                auth_id=exports.user_of(one.name, shared.share.name),
            )
            client.write_at(file, 0, b'two')
            denied = [shared.writer, shared.reader]
            shared.driver.apply_access(CTX, shared.share, [], [], denied)
            with pytest.raises((NfsError, TimeoutError)):
                client.write_at(file, 0, b'three')


def is_let_in(shared, gateway, name='log') -> bool:
    shared.driver.keep_serving()
    with contextlib.suppress(NfsError):
        return bool(shared.read(gateway, name))
    return False


@restarts
def test_other_gateway_writes_what_a_killed_one_had_open(harness, driver, gateways):
    """Sessions of a killed gateway last 300 s; one command evicts those of all shares.

    Each eviction takes a second, and the manager makes one after the other.
    """
    one, two = gateways.each
    shares = [Shared(harness, driver) for _ in range(OPEN_SHARES)]
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(contextlib.closing(one.client(WRITER)))
        for each in shares:
            open_and_write(client, each, b'one')
        one.kill()
    made = commands_until_evicted(driver)
    assert len(made) == 1
    for each in shares:
        each.write(two, 'log', b'two')
        assert each.read(two, 'log') == b'two'
    # A gateway that comes back learns what it is to export.
    one.start()
    one.wait()
    for each in shares:
        wait_until(lambda s=each: is_let_in(s, one), 'it serves the share again', 30)
        assert each.read(one, 'log') == b'two'


def open_and_write(client, shared, data: bytes):
    file = in_time(lambda: client.open(shared.path, 'log', create=True))
    client.write_at(file, 0, data)
    return file


def commands_until_evicted(driver) -> list[str]:
    """Watch until a gateway is evicted; return what changes access meanwhile."""
    made: list[str] = []
    is_watched = True

    def note(event: str, args: tuple) -> None:
        if is_watched and event == 'manila_lite.ceph':
            made.extend(name for name in args if name.endswith(CHANGING_ACCESS))

    def is_evicted() -> bool:
        with contextlib.suppress(exception.DriverError):
            driver.keep_serving()
            return bool(made)
        return False

    sys.addaudithook(note)
    wait_until(is_evicted, 'the gateway is evicted', 60)
    is_watched = False
    return made


@restarts
def test_metadata_server_does_not_wait_for_a_gateway_that_died_with_it(
    ceph_alone, started_gateways
):
    """It would keep all clients waiting for as long as the sessions last."""
    started_gateways.start()
    one, two = started_gateways.each
    with served_by(started_gateways) as harness:
        shared = Shared(harness, harness.start())
        with contextlib.closing(one.client(WRITER)) as client:
            open_and_write(client, shared, b'one')
            ceph_alone.kill('mds')
            one.kill()
        ceph_alone.start('mds')
        commands_until_evicted(shared.driver)
        shared.write(two, 'log', b'two')
        assert shared.read(two, 'log') == b'two'


@restarts
def test_gateway_taken_for_dead_writes_nothing_and_starts_again(shared, gateways):
    """It was paused, and another one serves what it had open."""
    one, two = gateways.each
    with contextlib.closing(one.client(WRITER)) as client:
        file = open_and_write(client, shared, b'one')
        with one.paused():
            with one.server_paused():
                commands_until_evicted(shared.driver)
                shared.write(two, 'log', b'two')
            with pytest.raises(NfsError):
                client.write_at(file, 0, b'three')
            assert shared.read(two, 'log') == b'two'
    wait_until(lambda: is_let_in(shared, one), 'it serves the share again', 30)
    backend = shared.driver.backend
    generation = backend.records.get(exports.FENCE + one.name)
    # Another share service might be late with the same.
    backend.evict(exports.sessions_of(backend.records.name, one.name, generation))
    shared.write(one, 'log', b'four')
    assert shared.read(two, 'log') == b'four'


@restarts
def test_gateway_started_again_serves_what_was_changed_meanwhile(
    harness, shared, gateways
):
    one, two = gateways.each
    shared.write(one, 'notes', b'hello')
    one.kill()
    other = Shared(harness, shared.driver)
    shared.driver.apply_access(CTX, shared.share, [shared.reader], [], [shared.writer])
    one.start()
    one.wait()
    shared.driver.keep_serving()
    wait_until(lambda: is_exported(one, other), 'it has learned all exports', 30)
    other.write(one, 'notes', b'other')
    assert other.read(two, 'notes') == b'other'
    wait_until(lambda: is_exported(one, shared), 'it has learned all exports', 30)
    assert shared.read(one, 'notes') == b'hello'
    with pytest.raises(NfsError, match='NOENT'):
        shared.read(one, 'notes', WRITER)


@restarts
def test_sessions_of_a_gateway_that_starts_again_are_evicted_together(
    harness, driver, gateways
):
    """Its NFS server would evict one after the other, which takes a second each."""
    one = gateways.each[0]
    shares = [Shared(harness, driver) for _ in range(3)]
    for shared in shares:
        shared.write(one, 'notes', b'hello')
    generation = generation_of(driver, one)
    one.kill()
    one.start()
    assert commands_until_evicted(driver) == ['session evict']
    one.wait()
    assert driver.backend.records.get(exports.FENCE + one.name) == generation
    assert generation_of(driver, one) == generation + 1
    for shared in shares:
        shared.write(one, 'notes', b'again')


def state_of(driver, gateway) -> dict:
    backend = driver.backend
    states = exports.Gateways(backend.cluster, [gateway.address])
    return states.states(backend.records.name)[gateway.name]


def generation_of(driver, gateway) -> int:
    return state_of(driver, gateway)['generation']


@restarts
def test_gateway_follows_one_of_an_earlier_release(shared, gateways):
    """That one did not publish which generation its sessions are of."""
    one = gateways.each[0]
    shared.write(one, 'notes', b'hello')
    one.kill()
    state = state_of(shared.driver, one)
    del state['generation'], state['ended']
    publish(shared.driver, gateways, one, state)
    assert commands_until_evicted(shared.driver) == ['session evict']
    one.start()
    one.wait()
    wait_until(lambda: is_let_in(shared, one, 'notes'), 'it serves the share', 30)
    assert shared.read(one, 'notes') == b'hello'


def publish(driver, gateways, gateway, state: dict) -> None:
    user = gateways.user
    cluster = cluster_as(driver.configuration, user.name, str(user.keyring))
    cluster.pool = driver.backend.cluster.pool
    name = driver.backend.records.name
    values = {exports.GATEWAY + gateway.name: json.dumps(state)}
    cluster.write(name, {}, values, namespace=GATEWAYS)


@restarts
def test_client_denied_while_a_gateway_starts_is_not_let_in(shared, gateways):
    """Its NFS server begins with what was allowed before."""
    one = gateways.each[0]
    shared.write(one, 'notes', b'hello')
    one.kill()
    config = one.folder / 'server.conf'
    config.unlink()
    one.start()
    wait_until(config.exists, 'the NFS server starts', 30)
    shared.driver.apply_access(CTX, shared.share, [shared.reader], [], [shared.writer])
    one.wait()
    wait_until(lambda: is_let_in(shared, one, 'notes'), 'it serves the share', 30)
    with pytest.raises(NfsError, match='NOENT'):
        shared.read(one, 'notes', WRITER)


def is_exported(gateway, shared) -> bool:
    shared.driver.keep_serving()
    return shared.export()['number'] in gateway.server.numbers()


@restarts
def test_gateway_ends_with_its_nfs_server(shared, gateways):
    """The process that started the gateway restarts it with all its exports."""
    one = gateways.each[0]
    pid = one.server_pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: one.has_ended, 'the gateway has ended', 20)
    one.start()
    one.wait()
    shared.write(one, 'notes', b'hello')


def test_share_that_was_removed_does_not_keep_others_from_a_gateway(
    harness, driver, gateways
):
    """It is the first one that is looked at."""
    shares = [Shared(harness, driver) for _ in range(2)]
    removed, other = sorted(shares, key=lambda each: each.share.name)
    for each in shares:
        key = EXPORT + each.share.name
        lost = each.export() | {'users': {}}
        driver.backend.records.change(key, decide=lambda _, k=key, v=lost: {k: v})
    driver.backend.run('subvolume rm', sub_name=removed.share.name)
    driver.exports.watch()
    assert not removed.export()['users']
    assert len(other.export()['users']) == 2
    other.write(gateways.each[0], 'notes', b'hello')


def test_reverted_share_stays_exported(harness, shared, gateways):
    one, two = gateways.each
    shared.write(one, 'notes', b'before')
    snapshot = harness.snapshot(shared.share)
    shared.driver.create_snapshot(CTX, snapshot)
    shared.write(one, 'notes', b'after!')
    shared.driver.revert_to_snapshot(CTX, snapshot, [], [])
    for gateway in (one, two):
        assert shared.read(gateway, 'notes') == b'before'
    shared.write(two, 'notes', b'later.')
    assert shared.read(one, 'notes') == b'later.'


def test_share_is_managed_by_its_location(harness, shared, gateways):
    shared.write(gateways.each[0], 'notes', b'hello')
    location = shared.locations[1]['path']
    shared.driver.unmanage(shared.share)
    assert shared.read(gateways.each[0], 'notes') == b'hello'
    again = harness.at(location)
    assert shared.driver.manage_existing(again, {})['size'] == 1
    rule = harness.rule(again, STRANGER)
    shared.driver.apply_access(CTX, again, [rule])
    assert shared.read(gateways.each[1], 'notes', STRANGER) == b'hello'
    with pytest.raises(NfsError, match='NOENT'):
        shared.read(gateways.each[0], 'notes')


@pytest.mark.parametrize(
    'values', [{'access_type': 'cephx'}, {'access_level': 'unheard-of'}]
)
def test_rule_that_can_never_apply_says_why(harness, shared, values):
    rule = harness.rule(shared.share, '10.0.0.4', **values)
    rules = [shared.reader, rule]
    replies = shared.driver.apply_access(CTX, shared.share, rules, [rule])
    assert replies[rule.id]['state'] == 'error'
    assert replies[rule.id]['reason'].startswith('NFS takes')


def test_handle_of_another_share_opens_nothing(harness, shared, gateways):
    """A client of one share makes up handles of another one."""
    other = Shared(harness, shared.driver)
    other.driver.apply_access(CTX, other.share, [other.reader], [], [other.writer])
    for gateway in gateways.each:
        with (
            contextlib.closing(gateway.client(WRITER)) as client,
            contextlib.closing(gateway.client(READER)) as owner,
        ):
            own, foreign = client.look_up(shared.path), owner.look_up(other.path)
            found = [
                (handle.hex(), reply)
                for handle in file_handles.of_cephfs(own, foreign)
                for reply in file_handles.replies(client, handle)
            ]
            assert not found


@restarts
def test_gateway_that_ends_while_its_clients_reclaim_is_not_waited_for(
    shared, gateways
):
    """All let no client open files until it has its place again, or has lost it."""
    one, two = gateways.each
    shared.write(one, 'notes', b'hello')  # without clients there is no such time
    one.kill()
    one.start()
    one.wait()
    wait_until(lambda: is_reclaiming(shared, two), 'clients reclaim', 20)
    one.kill()
    assert is_reclaiming(shared, two)
    with contextlib.closing(two.client(WRITER)) as client:
        in_time(lambda: client.write(shared.path, 'notes', b'world'), 60)


def is_reclaiming(shared, gateway) -> bool:
    with contextlib.closing(gateway.client(WRITER)) as client:
        found = file_handles.refusal(
            lambda: client.open(shared.path, 'new', create=True)
        )
        assert found in (None, 'GRACE')
        return found is not None
