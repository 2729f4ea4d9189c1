"""Shares on CephFS, on a cluster of one node in memory.

Figures are beside the same commands that a bare process sends with librados, in
turn with ours, since one manager carries them all out one after the other.
"""

from collections.abc import Callable, Iterator
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from benchmarks import service
from benchmarks.verdict import Verdict
from manila_lite import exception
from manila_lite.data.copying import copy_tree
from manila_lite.data.gate import Copying
from manila_lite.data.mounts import CephMounts
from manila_lite.share.drivers.base import AccessRuleForDriver
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.ceph_harness import CephHarness, CephNfsHarness
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support, nfs_gateways, storage
from tests.support.installation import Installation
from tests.support.nfs_client import NfsError

SHARES = 1000
SOME = 100
MEASURED = 40
FILES, CHANGED = 1000, 10
LARGE_MIB = 256
FAILURES = 3
CLIENT = '127.0.0.2'
FIRST_LOOK, POLL_INTERVAL = 0.02, 0.002
"""A client looks for the first time when it may be done: each look takes the processor
from the manager of the cluster, which is on the same machine."""

TIMES, MORE_MS = 1.3, 25
MORE_MIB = 25

_BARE = """
import json, sys, time
import rados
cluster = rados.Rados(conffile=sys.argv[1], rados_id='admin')
cluster.connect()
for line in sys.stdin:
    began = time.perf_counter()
    code, _, status = cluster.mgr_command(line, b'')
    assert code == 0, status
    print(1e3 * (time.perf_counter() - began), flush=True)
"""


def run(verdict: Verdict) -> None:
    reason = ceph_support.missing()
    if reason is not None:
        verdict.record_missing('ceph', reason)
        return
    cluster = ceph_support.find_cluster()
    options = cluster.options(cephfs_command_timeout=60)
    with _bare_calls(cluster) as bare:
        with tempfile.TemporaryDirectory() as folder:
            _record_service(verdict, pathlib.Path(folder), options, bare)
        _record_driver(verdict, cluster.options(cephfs_command_timeout=60), bare)
    _record_revert(verdict, cluster)
    _record_copy(verdict, cluster)
    _record_failover(verdict, cluster)


class _Bare:
    """Commands for subvolumes of a group of their own, one at a time."""

    def __init__(self, process: subprocess.Popen):
        self._process = process
        self._numbers = itertools.count()
        self._call('subvolumegroup create')

    def _call(self, command: str, **arguments: object) -> float:
        """Return the milliseconds that a command took."""
        request = {
            'prefix': f'fs {command}',
            'vol_name': ceph_support.FILESYSTEM,
            'group_name': 'bare',
            **arguments,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + '\n')
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def create(self) -> float:
        self.name = f'bare-{next(self._numbers)}'
        return self._call(
            'subvolume create',
            sub_name=self.name,
            size=1 << 30,
            namespace_isolated=True,
        )

    def authorize(self) -> float:
        return self._call('subvolume authorize', sub_name=self.name, auth_id=self.name)


@contextlib.contextmanager
def _bare_calls(cluster: ceph_support.CephCluster) -> Iterator[_Bare]:
    process = subprocess.Popen(
        [ceph_support.PYTHON, '-I', '-c', _BARE, str(cluster.conf)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _Bare(process)
    finally:
        process.kill()
        process.wait()


# By way of the API


def _record_service(
    verdict: Verdict, folder: pathlib.Path, options: dict, bare: _Bare
) -> None:
    created, allowed, bare_created, bare_authorized = [], [], [], []
    with (
        _running(folder, 'cephfs', options) as installation,
        contextlib.closing(service.Client(installation)) as client,
    ):
        memory = _memory(installation)
        specs = {'driver_handles_share_servers': 'False'}
        share_type = {'name': 'default', 'extra_specs': specs}
        client.request('POST', '/types', {'share_type': share_type})
        for number in range(-5, MEASURED):
            share, taken = _create(client)
            rule_taken = _allow(client, share, f'user-{number}')
            others = bare.create(), bare.authorize()
            if number >= 0:  # those before fill caches
                created.append(taken)
                allowed.append(rule_taken)
                bare_created.append(others[0])
                bare_authorized.append(others[1])
    for name, taken, others in (
        ('create on cephfs to available, median', created, bare_created),
        ('rule on cephfs to active, median', allowed, bare_authorized),
    ):
        base = statistics.median(others)
        verdict.record(
            name,
            statistics.median(taken),
            'ms',
            at_most=round(TIMES * base + MORE_MS, 2),
            bare_ms=round(base, 2),
        )
    _record_memory(verdict, memory)


def _record_memory(verdict: Verdict, memory: float) -> None:
    """Compare the service and the process of its calls with that of btrfs."""
    reason = storage.missing()
    if reason is not None:
        verdict.record_missing('memory of the idle service with cephfs', reason)
        return
    with storage.folder() as pools, tempfile.TemporaryDirectory() as folder:
        options = storage.options(pools) | {
            'btrfs_pools': f'pool:{pools}/pool.img',
            'btrfs_export_addresses': '127.0.0.1',
        }
        with _running(pathlib.Path(folder), 'btrfs', options) as other:
            base = service.memory(other.running['serve'].pid)
    verdict.record(
        'memory of the idle service with cephfs, more than with btrfs',
        memory - base,
        'MiB',
        at_most=MORE_MIB,
        cephfs_mib=round(memory, 1),
        btrfs_mib=round(base, 1),
    )


def _memory(installation: Installation) -> float:
    pids = service.tree(installation.running['serve'].pid)
    return sum(service.memory(pid) for pid in pids)


@contextlib.contextmanager
def _running(
    folder: pathlib.Path, driver: str, options: dict
) -> Iterator[Installation]:
    installation = Installation(
        folder / 'service',
        forked=False,
        backends={'measured': {**options, 'share_driver': driver}},
        options='default_share_type = default\nenabled_share_protocols = CEPHFS,NFS',
        sections='[quota]\nshares = -1\ngigabytes = -1\n',
    )
    try:
        yield installation.start()
    finally:
        installation.close()


def _create(client: service.Client) -> tuple[str, float]:
    began = time.perf_counter()
    body = {'share': {'share_proto': 'CEPHFS', 'size': 1, 'share_type': 'default'}}
    share = client.request('POST', '/shares', body)['share']['id']
    _wait_for(lambda: client.get(f'/shares/{share}')['share']['status'], 'available')
    return share, (time.perf_counter() - began) * 1e3


def _allow(client: service.Client, share: str, user: str) -> float:
    began = time.perf_counter()
    rule = {'access_type': 'cephx', 'access_to': user, 'access_level': 'rw'}
    client.request('POST', f'/shares/{share}/action', {'allow_access': rule})
    path = f'/share-access-rules?share_id={share}'
    _wait_for(lambda: client.get(path)['access_list'][0]['state'], 'active')
    return (time.perf_counter() - began) * 1e3


def _wait_for(found: Callable[[], str], wanted: str) -> None:
    time.sleep(FIRST_LOOK)
    while (status := found()) != wanted:
        assert 'error' not in status
        time.sleep(POLL_INTERVAL)


# The driver alone


def _record_driver(verdict: Verdict, options: dict, bare: _Bare) -> None:
    harness = CephHarness('cephfs', lambda: Configuration.from_values(options))
    driver = harness.start()

    def create(count: int) -> list[float]:
        return [
            _milliseconds(driver.create_share, CTX, harness.share())
            for _ in range(count)
        ]

    first, first_bare = create(SOME), [bare.create() for _ in range(SOME)]
    create(SHARES - 2 * SOME)
    last, last_bare = create(SOME), [bare.create() for _ in range(SOME)]
    base = statistics.median(first)
    verdict.record(
        f'create on cephfs at {SHARES} shares, to the first {SOME}',
        statistics.median(last) / base,
        'times',
        at_most=TIMES,
        ms=round(statistics.median(last), 2),
        base_ms=round(base, 2),
        bare=round(statistics.median(last_bare) / statistics.median(first_bare), 2),
    )
    for name, act in (
        ('statistics', lambda: driver.get_share_stats(refresh=True)),
        ('ensuring', lambda: driver.ensure_shares(CTX, harness.shares)),
    ):
        verdict.record(
            f'{name} of {SHARES} shares on cephfs: calls of the cluster',
            _calls(act),
            'calls',
            at_most=5,
            ms=round(_milliseconds(act), 2),
        )
    driver.backend.cluster.close()


def _calls(act: Callable[[], object]) -> int:
    calls, is_counting = 0, True

    def count(event: str, args: tuple[object, ...]) -> None:
        nonlocal calls
        calls += is_counting and event == 'manila_lite.ceph'

    sys.addaudithook(count)
    act()
    is_counting = False
    return calls


def _record_revert(verdict: Verdict, cluster: ceph_support.CephCluster) -> None:
    """Revert a share of small files, of which few have changed."""
    options = cluster.options(cephfs_command_timeout=60)
    harness = CephHarness('cephfs', lambda: Configuration.from_values(options))
    driver, share = harness.start(), harness.share()
    driver.create_share(CTX, share)
    rule = AccessRuleForDriver(
        id='rule',
        share_id=share.share_id,
        access_type='cephx',
        access_to='reverting',
        access_level='rw',
    )
    (reply,) = driver.apply_access(CTX, share, [rule], [rule]).values()
    location = f':{driver.backend.get_share(share)["path"]}'
    key = str(reply['access_key'])
    write = 'for i in $(seq {}); do echo {} > $i; done; sync -f .'
    with cluster.mounted(location, 'reverting', key) as client:
        client.run(write.format(FILES, 'then'))
        snapshot = harness.snapshot(share)
        driver.create_snapshot(CTX, snapshot)
        client.run(write.format(CHANGED, 'now'))
        taken = _milliseconds(driver.revert_to_snapshot, CTX, snapshot, [], [])
        assert client.run('cat * | sort -u') == b'then\n'
    verdict.record(
        f'revert of {FILES} files, {CHANGED} changed, under a client', taken, 'ms'
    )
    driver.backend.cluster.close()


def _record_copy(verdict: Verdict, cluster: ceph_support.CephCluster) -> None:
    """Copy files into a share as a migration does, and mount and unmount it."""
    options = cluster.options(cephfs_command_timeout=60)
    harness = CephHarness('cephfs', lambda: Configuration.from_values(options))
    driver, share = harness.start(), harness.share()
    driver.create_share(CTX, share)
    how = Copying(lambda count: None, lambda: None, lambda: None, token=1)
    with tempfile.TemporaryDirectory() as name:
        source = pathlib.Path(name, 'source')
        source.mkdir()
        for number in range(FILES):
            (source / str(number)).write_bytes(os.urandom(1000))
        (source / 'large').write_bytes(os.urandom(LARGE_MIB << 20))
        mounts = CephMounts(pathlib.Path(name, 'mounts'))
        top = os.open(source, os.O_RDONLY)

        def connect(act: Callable[[int], object]) -> None:
            location = driver.connection_get_info(CTX, share)['ceph']
            with mounts.mounted(share.id, location) as directory:
                act(directory)
            driver.connection_end(CTX, share)

        taken = _milliseconds(connect, lambda into: copy_tree(top, into, how))
        nothing = _milliseconds(connect, lambda into: None)
        os.close(top)
    verdict.record(
        f'copy of {FILES} files and one of {LARGE_MIB} MiB into a share on cephfs',
        taken,
        'ms',
        to_mount_and_unmount=round(nothing),
    )
    driver.backend.cluster.close()


def _record_failover(verdict: Verdict, cluster: ceph_support.CephCluster) -> None:
    """Kill the gateway of a writer; a client of another one writes its file."""
    name = 'file of a killed NFS gateway, until written by another one'
    if reason := nfs_gateways.missing():
        verdict.record_missing(name, reason)
        return
    nfs_gateways.GUARD.build()
    taken = []
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster.user(**nfs_gateways.caps()) as user,
        contextlib.closing(_Gateways(cluster, user, pathlib.Path(folder))) as served,
    ):
        for number in range(FAILURES):
            taken.append(served.fail(number))
    verdict.record(name, max(taken), 's', at_most=15, least=round(min(taken), 1))


class _Gateways:
    """Two gateways, one share, and what the share service does once a second."""

    def __init__(
        self,
        cluster: ceph_support.CephCluster,
        user: ceph_support.CephUser,
        folder: pathlib.Path,
    ):
        self._gateways = nfs_gateways.Gateways(cluster, user, folder)
        self._gateways.start()
        options = Configuration.from_values(self._gateways.options)
        harness = CephNfsHarness('cephfs', lambda: options)
        self._driver = harness.start()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        share = harness.share()
        (first, *_) = self._driver.create_share(CTX, share)
        self._path = first['path'].partition(':')[2]
        rule = harness.rule(share, CLIENT)
        self._driver.apply_access(CTX, share, [rule], [rule])

    def _watch(self) -> None:
        while not self._has_ended.wait(1):
            with contextlib.suppress(exception.DriverError):
                self._driver.keep_serving()

    def fail(self, number: int) -> float:
        """Return the seconds until the file of a writer can be written again."""
        one, two = self._gateways.each
        name = f'log-{number}'
        with (
            contextlib.closing(one.client(CLIENT)) as writer,
            contextlib.closing(two.client(CLIENT)) as other,
        ):
            file = nfs_gateways.in_time(
                lambda: writer.open(self._path, name, create=True)
            )
            writer.write_at(file, 0, b'one')
            nfs_gateways.in_time(lambda: other.write(self._path, f'{name}-2', b''))
            one.kill()
            began = time.perf_counter()
            while True:
                with contextlib.suppress(NfsError):
                    other.write(self._path, name, b'two')
                    break
                time.sleep(0.05)
            taken = time.perf_counter() - began
            assert other.read(self._path, name) == b'two'
        self._gateways.start()
        return taken

    def close(self) -> None:
        self._has_ended.set()
        self._thread.join()
        self._gateways.kill()
        self._driver.backend.cluster.close()


def _milliseconds(act: Callable[..., object], *args: object) -> float:
    began = time.perf_counter()
    act(*args)
    return (time.perf_counter() - began) * 1e3
