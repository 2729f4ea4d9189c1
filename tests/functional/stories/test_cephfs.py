"""Shares on CephFS, from the request to the bytes that clients read.

Requests use the official command line, and clients are those of Ceph.
"""

import contextlib
import functools
import subprocess
import sys
import typing

import pytest

from tests.functional.stories.conftest import new_installation, running
from tests.support import ceph as ceph_support, ceph_supervisor, sampling
from tests.support.ceph import CephCluster, ClientError
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.make_run import MakeRun
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

pytestmark = ceph_support.limited


class Deployment(typing.NamedTuple):
    installation: Installation
    cli: Cli
    rest: RestClient
    cluster: CephCluster

    def wait(self, noun: str, id: str) -> dict:
        def found():
            resource = self.rest.get(f'/{noun}s/{id}')[noun]
            assert 'error' not in resource['status']
            return resource['status'] == 'available' and resource

        return wait_until(found, f'{noun} {id} is available', 120)

    def create(self, *args: object) -> str:
        """Ask for a share; return its id."""
        return self.cli('share create', 'CEPHFS', 1, *args)['id']

    def location(self, share: str) -> str:
        locations = self.rest.get(f'/shares/{share}/export_locations')
        return locations['export_locations'][0]['path']

    def allow(self, share: str, user: str, level: str = 'rw') -> dict:
        """Allow a user; return the rule with its key."""
        rule = self.cli(
            'share access create', share, 'cephx', user, '--access-level', level
        )
        return wait_until(lambda: self._rule(share, rule['id']), 'the rule applies')

    def _rule(self, share: str, id: str) -> dict | None:
        rules = self.rest.get(f'/share-access-rules?share_id={share}')['access_list']
        (rule,) = (one for one in rules if one['id'] == id)
        assert rule['state'] != 'error'
        return rule if rule['state'] == 'active' else None

    def deny(self, share: str, rule: str) -> None:
        self.cli('share access delete', share, rule)
        path = f'/share-access-rules?share_id={share}'
        wait_until(
            lambda: all(
                one['id'] != rule for one in self.rest.get(path)['access_list']
            ),
            'the rule is gone',
        )

    def mounted(self, share: str, rule: dict):
        return self.cluster.mounted(
            self.location(share), rule['access_to'], rule['access_key']
        )


@contextlib.contextmanager
def deployed(cluster, folder):
    with new_installation(
        folder / 'installation',
        options='default_share_type = ceph\nenabled_share_protocols = CEPHFS',
        backends={'ceph': {**cluster.options(), 'share_driver': 'cephfs'}},
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


@contextlib.contextmanager
def run_ceph(folder):
    """Start what `make run-ceph` starts; yield it and its cluster."""
    script = [sys.executable, ceph_supervisor.__file__]
    run = functools.partial(subprocess.run, check=True, timeout=150)
    run([*script, 'start', folder / 'ceph'])
    for log in folder.glob('*.log'):  # of the run before
        log.unlink()
    try:
        cluster = CephCluster(folder / 'ceph')
        with running(MakeRun(folder, '--ceph', cluster.conf)) as installation:
            installation.start()
            cli = Cli('--os-auth-type', 'none', '--os-endpoint', installation.url)
            yield Deployment(installation, cli, installation.rest('admin'), cluster)
    finally:
        run([*script, 'stop', folder / 'ceph'])


@sampling.suite('failures of a Ceph cluster', 1)
def test_cluster_of_make_run_ceph_is_there_again_after_its_end(started_ceph, tmp_path):
    with run_ceph(tmp_path) as deployment:
        share = deployment.create()
        deployment.wait('share', share)
        rule = deployment.allow(share, 'alice')
        with deployment.mounted(share, rule) as client:
            client.write('notes', b'one')
    with run_ceph(tmp_path) as deployment, deployment.mounted(share, rule) as client:
        assert client.read('notes') == b'one'
        deployment.wait('share', deployment.create())


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
