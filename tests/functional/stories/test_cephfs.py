"""Shares on CephFS, from the request to the bytes that clients read.

Requests use the official command line, and clients are those of Ceph.
"""

import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import typing

import pytest

from tests.functional.stories.ceph_site import Deployment
from tests.functional.stories.conftest import new_installation, running
from tests.support import ceph as ceph_support, ceph_supervisor, sampling
from tests.support.ceph import CephCluster, ClientError
from tests.support.cli import Cli
from tests.support.installation import SEPARATE, SERVE
from tests.support.make_run import MakeRun
from tests.support.nfs_client import NfsClient, NfsError
from tests.support.nfs_gateways import ADDRESSES, in_time
from tests.support.processes import Command, free_port, wait_until

pytestmark = ceph_support.limited


@contextlib.contextmanager
def deployed(cluster, folder, kind=SERVE, **options):
    with new_installation(
        folder / 'installation',
        kind=kind,
        options='default_share_type = ceph\nenabled_share_protocols = CEPHFS, NFS',
        backends={'ceph': {**cluster.options(), **options, 'share_driver': 'cephfs'}},
    ) as installation:
        installation.start()
        cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        cli(
            *('share type create', 'ceph', 'false', '--snapshot-support', 'true'),
            *('--create-share-from-snapshot-support', 'true'),
            *('--revert-to-snapshot-support', 'true'),
        )
        yield Deployment(installation, cli, installation.rest('admin'), cluster)


def test_share_its_snapshot_and_its_copy_have_the_bytes_of_clients(ceph, tmp_path):
    with deployed(ceph, tmp_path) as deployment:
        share = deployment.create()
        deployment.wait('share', share)
        rule = deployment.allow(share, f'writer-{share[:8]}')
        reader = deployment.allow(share, f'reader-{share[:8]}', 'ro')
        with (
            deployment.mounted(share, rule) as client,
            deployment.mounted(share, reader) as reading,
        ):
            assert client.size() == 1
            client.write('notes', b'then')
            assert reading.read('notes') == b'then'
            with pytest.raises(ClientError):
                reading.write('notes', b'now')
            snapshot = deployment.cli('share snapshot create', share)['id']
            deployment.wait('snapshot', snapshot)
            client.write('notes', b'now')
            copy = deployment.create('--snapshot-id', snapshot)
            deployment.wait('share', copy)
            with deployment.mounted(
                copy, deployment.allow(copy, f'writer-{share[:8]}')
            ) as other:
                assert other.read('notes') == b'then'
            deployment.cli('share revert', snapshot)
            deployment.wait('share', share)
            assert reading.read('notes') == b'then'
            client.write('notes', b'now')
            with client.writing('log') as log:
                assert log.write(b'one')
                deployment.deny(share, rule['id'])
                assert not log.write(b'two')
            assert reading.read('notes') == b'now'


def test_nfs_share_has_the_bytes_of_clients_of_both_gateways(ceph, gateways, tmp_path):
    options = gateways.options | {'cephfs_nfs_gateways': ','.join(ADDRESSES)}
    with deployed(ceph, tmp_path, **options) as deployment:
        share = deployment.create(share_proto='NFS')
        deployment.wait('share', share)
        rule = deployment.allow(share, '127.0.0.2', kind='ip')
        deployment.allow(share, '127.0.0.3', 'ro', kind='ip')
        locations = deployment.rest.get(f'/shares/{share}/export_locations')
        found = [one['path'].split(':', 1) for one in locations['export_locations']]
        assert {address for address, _ in found} == set(ADDRESSES)
        path = found[0][1]
        one, two = gateways.each
        with (
            contextlib.closing(one.client('127.0.0.2')) as writer,
            contextlib.closing(two.client('127.0.0.3')) as reader,
        ):
            in_time(lambda: writer.write(path, 'notes', b'then'))
            assert reader.read(path, 'notes') == b'then'
            snapshot = deployment.cli('share snapshot create', share)['id']
            deployment.wait('snapshot', snapshot)
            writer.write(path, 'notes', b'now!')
            assert reader.read(path, 'notes') == b'now!'
            deployment.cli('share revert', snapshot)
            deployment.wait('share', share)
            assert reader.read(path, 'notes') == b'then'
            file = writer.open(path, 'log', create=True)
            writer.write_at(file, 0, b'one')
            deployment.deny(share, rule['id'])
            with pytest.raises(NfsError, match='ACCESS'):
                writer.write_at(file, 0, b'two')
            assert reader.read(path, 'log') == b'one'
            deployment.cli('share snapshot delete', snapshot, '--wait')
            deployment.cli('share delete', share)
            wait_until(
                lambda: path not in _users_of_shares(ceph), 'its users are gone', 60
            )


def _users_of_shares(cluster) -> str:
    """Return what all Ceph users may use."""
    return json.dumps(cluster.admin.mon('auth ls'))


@contextlib.contextmanager
def second_share_service(installation):
    """Run another share service with the same host."""
    command = Command(
        'manila-lite-share',
        *('--config-file', installation.conf),
        log=installation.folder / 'second.log',
        forked=True,
    )
    try:
        command.wait_for(
            lambda: f'{installation.service_host("ceph")} is up' in command.output,
            'it is up',
        )
        yield command
    finally:
        os.kill(command.pid, signal.SIGCONT)
        command.kill()


def reverting_processes(parents: set[int]) -> dict[int, int]:
    """Return the processes that revert shares for others, and for which."""
    found = {}
    for path in pathlib.Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            parent = int((path / 'stat').read_text().rpartition(')')[2].split()[1])
            command = (path / 'cmdline').read_bytes()
            if parent in parents and b'copy_worker' in command:
                found[int(path.name)] = parent
    return found


@sampling.suite('failures of a Ceph cluster', 1)
def test_two_share_services_serve_a_back_end_and_one_is_paused(ceph, tmp_path):
    """What the paused one still sends is refused by the cluster."""
    with (
        deployed(ceph, tmp_path, SEPARATE) as deployment,
        second_share_service(deployment.installation) as second,
    ):
        services = {deployment.installation.running['share'].pid, second.pid}
        shares = [deployment.create() for _ in range(4)]
        for share in shares:
            deployment.wait('share', share)
        share, *others = shares
        rule = deployment.allow(share, f'writer-{share[:8]}')
        with deployment.mounted(share, rule) as client:
            client.run('for i in $(seq 400); do echo then > $i; done; sync -f .')
            snapshot = deployment.cli('share snapshot create', share)['id']
            deployment.wait('snapshot', snapshot)
            client.run('for i in $(seq 400); do echo now > $i; done; sync -f .')
            deployment.cli('share revert', snapshot)
            paused = wait_until(
                lambda: reverting_processes(services), 'it is being reverted'
            )
            pids = {*paused, *paused.values()}
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                _revert_elsewhere(deployment, share, snapshot)
                client.run('for i in $(seq 400); do echo later > $i; done; sync -f .')
                for other in others:
                    deployment.cli('share resize', other, 2)
                for other in others:
                    deployment.wait('share', other)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            wait_until(lambda: not reverting_processes(services), 'it has ended', 60)
            assert client.run('cat * | sort | uniq -c').split() == [b'400', b'later']
            assert deployment.rest.show(share)['status'] == 'available'


def _revert_elsewhere(deployment, share, snapshot):
    """Wait until the revert is given up, and request it again."""

    def is_done():
        status = deployment.rest.show(share)['status']
        if status == 'error':
            with contextlib.suppress(AssertionError):  # not both are in error yet
                deployment.cli('share revert', snapshot)
        return status == 'available'

    wait_until(is_done, 'the other service has reverted it', 120)


@contextlib.contextmanager
def run_ceph(folder, gateway=()):
    """Start what `make run-ceph` starts; yield it and its cluster."""
    script = [sys.executable, ceph_supervisor.__file__]
    run = functools.partial(subprocess.run, check=True, timeout=150)
    run([*script, 'start', folder / 'ceph', *gateway])
    for log in folder.glob('*.log'):  # of the run before
        log.unlink()
    try:
        cluster = CephCluster(folder / 'ceph')
        nfs = ['--nfs-address', gateway[0]] if gateway else []
        options = ['--ceph', cluster.conf, *nfs]
        with running(MakeRun(folder, *options)) as installation:
            installation.start()
            cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
            yield Deployment(installation, cli, installation.rest('admin'), cluster)
    finally:
        run([*script, 'stop', folder / 'ceph'])


@sampling.suite('failures of a Ceph cluster', 1)
def test_cluster_of_make_run_ceph_is_there_again_after_its_end(started_ceph, tmp_path):
    gateway = '127.0.0.13', str(free_port())
    with run_ceph(tmp_path, gateway) as deployment:
        share = deployment.create()
        deployment.wait('share', share)
        rule = deployment.allow(share, 'alice')
        with deployment.mounted(share, rule) as client:
            client.write('notes', b'one')
            snapshot = deployment.cli('share snapshot create', share)['id']
            deployment.wait('snapshot', snapshot)
            client.write('notes', b'two')
            deployment.cli('share revert', snapshot)
            deployment.wait('share', share)
        served = deployment.create(share_proto='NFS')
        deployment.wait('share', served)
        deployment.allow(served, '127.0.0.2', kind='ip')
        address, path = deployment.location(served).split(':', 1)
        assert address == gateway[0]
        with nfs_client(gateway) as nfs:
            in_time(lambda: nfs.write(path, 'notes', b'three'))
    with (
        run_ceph(tmp_path, gateway) as deployment,
        deployment.mounted(share, rule) as client,
    ):
        assert client.read('notes') == b'one'
        deployment.wait('share', deployment.create())
        with nfs_client(gateway) as nfs:
            assert in_time(lambda: nfs.read(path, 'notes')) == b'three'


def nfs_client(gateway):
    """Return a client of a gateway, which may just have been started."""
    address, port = gateway

    def connected():
        with contextlib.suppress(ConnectionRefusedError):
            return NfsClient(address, int(port), '127.0.0.2')

    return contextlib.closing(wait_until(connected, 'the gateway listens'))


@sampling.suite('failures of a Ceph cluster', 1)
def test_share_asked_for_without_a_manager_is_made_when_there_is_one(
    ceph_alone, tmp_path
):
    with deployed(ceph_alone, tmp_path) as deployment:
        deployment.wait('share', deployment.create())
        ceph_alone.kill('mgr')
        share = deployment.create()
        wait_until(deployment.installation.running_work, 'it is being created')
        ceph_alone.start('mgr')
        deployment.wait('share', share)


# Replicas

SITES = 'north', 'south'


class Replicated(typing.NamedTuple):
    """A service with back ends on two clusters, and a share with a replica each."""

    deployment: Deployment
    clusters: dict[str, CephCluster]
    share: str
    replicas: dict[str, str]

    def wait(self, site: str, state: str) -> None:
        path = f'/share-replicas/{self.replicas[site]}'

        def has_state():
            found = self.deployment.rest.get(path)['share_replica']
            return (found['status'], found['replica_state']) == ('available', state)

        wait_until(has_state, f'{site} is {state}', 120)

    def promote(self, site: str) -> None:
        self.deployment.cli('share replica promote', self.replicas[site])
        self.wait(site, 'active')

    def mounted(self, site: str, access_to: str):
        """Mount the replica of a site with the key that its rule shows."""
        (rule,) = wait_until(self._rules, 'the rules are those of the replica', 120)
        share = self.deployment._replace(cluster=self.clusters[site])
        assert rule['access_to'] == access_to
        return share.mounted(self.share, rule)

    def _rules(self):
        path = f'/share-access-rules?share_id={self.share}'
        share = self.deployment.rest.get(f'/shares/{self.share}')['share']
        rules = self.deployment.rest.get(path)['access_list']
        return share['access_rules_status'] == 'active' and rules


@contextlib.contextmanager
def replicated(clusters, folder):
    backends = {
        site: {
            **cluster.options(cephfs_command_timeout=6),
            'share_driver': 'cephfs',
            'replication_domain': 'ceph',
            'backend_availability_zone': site,
            'cephfs_replication_type': 'dr',
        }
        for site, cluster in clusters.items()
    }
    with new_installation(
        folder / 'installation',
        options='default_share_type = ceph\nenabled_share_protocols = CEPHFS\n'
        'replica_state_update_interval = 3',
        backends=backends,
    ) as installation:
        installation.start()
        cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
        cli(
            *('share type create', 'ceph', 'false', '--snapshot-support', 'true'),
            *('--extra-specs', 'replication_type=dr'),
        )
        deployment = Deployment(
            installation, cli, installation.rest('admin'), clusters['north']
        )
        share = deployment.create('--availability-zone', 'north')
        deployment.wait('share', share)
        cli('share replica create', share, '--availability-zone', 'south')
        found = deployment.rest.get(f'/share-replicas/detail?share_id={share}')
        replicas = {
            one['availability_zone']: one['id'] for one in found['share_replicas']
        }
        yield Replicated(deployment, clusters, share, replicas)


@sampling.suite('stories of two clusters', 0)
@pytest.mark.timeout(600, method='thread')
def test_share_outlives_each_of_two_clusters(ceph, ceph_root, tmp_path):
    """It moves to the other cluster with all its bytes, and later without asking."""
    with (
        ceph_support.another_cluster() as south,
        replicated({'north': ceph, 'south': south}, tmp_path) as scene,
    ):
        user = f'writer-{scene.share[:8]}'
        scene.wait('south', 'in_sync')
        scene.deployment.allow(scene.share, user)
        with scene.mounted('north', user) as client, client.writing('open') as file:
            client.write('notes', b'then')
            assert file.write(b'before')
            scene.promote('south')
            assert not file.write(b'after')
        with scene.mounted('south', user) as client:
            assert client.read('notes') == b'then'
            assert client.read('open') == b'before\n'
            client.write('notes', b'now')
            scene.deployment.cli('share snapshot create', scene.share, '--name', 'kept')
            scene.wait('north', 'in_sync')
            copy = f'volumes/*/*{scene.replicas["north"]}/*'
            for name in ('last', 'next'):  # the update before this has ended
                client.write(name, b'in an update')
                show = f'cat {copy}/{name} || true'
                wait_until(lambda show=show: ceph_root.run(show), 'it is copied', 60)
            for name in ceph_supervisor.DAEMONS:
                south.kill(name)
        scene.promote('north')
        with scene.mounted('north', user) as client:
            assert client.read('notes') == b'now'
            assert client.read('last') == b'in an update'
            client.write('notes', b'after all')
        for name in ceph_supervisor.DAEMONS:
            south.start(name)
        scene.wait('south', 'in_sync')
        scene.promote('south')
        with scene.mounted('south', user) as client:
            assert client.read('notes') == b'after all'
