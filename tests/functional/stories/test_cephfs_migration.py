"""The data service moves shares to a Ceph cluster, inside of it and out of it."""

import contextlib
import functools
import json
import os
import pathlib
import re
import typing

import pytest

from manila_lite.share.drivers.cephfs.users import COPYING
from tests.drivers import content
from tests.functional.stories.ceph_site import Deployment
from tests.functional.stories.conftest import new_installation
from tests.functional.stories.test_host_assisted_migration import MIGRATION_OPTIONS
from tests.support import ceph as ceph_support
from tests.support.ceph import ClientError
from tests.support.cli import Cli
from tests.support.installation import SEPARATE
from tests.support.nfs_client import NfsClient, NfsError
from tests.support.nfs_gateways import ADDRESSES, in_time
from tests.support.processes import wait_until

pytestmark = [ceph_support.limited, ceph_support.on_cluster]

IN_COPY = 'data_copying_in_progress'
COPIED = 'data_copying_completed'
OPTIONS = """
default_share_type = any
enabled_share_protocols = CEPHFS, NFS
debug = true
"""
KEY = re.compile(r'\bAQ[A-Za-z0-9+/]{36}==')
"""A key of a Ceph user, as this and all of its commands show it."""

NEWEST = '2.95'  # known to the client for share migration


class Migrations(Deployment):
    """Requests of migrations, and what they are about."""

    def start(self, share: str, backend: str, pool: str) -> None:
        host = f'{self.installation.service_host(backend)}#{pool}'
        self.cli('share migration start', share, host, *MIGRATION_OPTIONS)

    def wait_for(self, share: str, state: str) -> None:
        def is_there():
            found = self.cli('share migration show', share)['task_state']
            assert found == state or not found.endswith(('error', 'success'))
            return found == state

        wait_until(is_there, state, 90)

    def complete(self, share: str) -> None:
        self.wait_for(share, COPIED)
        self.cli('share migration complete', share)
        self.wait_for(share, 'migration_success')
        self.wait('share', share)
        self.wait_idle()

    def wait_idle(self) -> None:
        wait_until(lambda: not self.installation.pending_work(), 'no work left')

    def kill_and_restart(self) -> None:
        self.installation.kill_and_restart('data')
        self.installation.wait_until_ready()

    def host(self, share: str) -> str:
        return self.rest.show(share)['host'].partition('@')[2]

    def subvolumes(self, options) -> list[str]:
        """Return what is in the group of a back end."""
        found = self.cluster.admin.mgr(
            'fs subvolume ls',
            vol_name=ceph_support.FILESYSTEM,
            group_name=options['cephfs_volume_group'],
        )
        return [one['name'] for one in json.loads(found)]

    def copies(self) -> bool:
        """Return whether these back ends have users of a data service."""
        conf = self.installation.conf.read_text()
        groups = re.findall(r'cephfs_volume_group = (\S+)', conf)
        return any(
            one['entity'].startswith(f'client.{COPYING}')
            and any(group in one['caps']['mds'] for group in groups)
            for one in self.cluster.admin.mon('auth ls')['auth_dump']
        )

    def wait_for_no_copy(self) -> None:
        """Wait until a copy that was cancelled has noticed it."""
        wait_until(lambda: not self.copies(), 'the users of copies are gone')


@contextlib.contextmanager
def deployed(cluster, folder, **backends):
    with new_installation(
        folder / 'installation',
        kind=(*SEPARATE, 'data'),
        options=OPTIONS,
        backends=backends,
    ) as installation:
        installation.start()
        cli = Cli(
            *('--os-auth-type', 'none', '--os-endpoint', installation.url),
            version=NEWEST,
        )
        cli('share type create', 'any', 'false')
        yield Migrations(installation, cli, installation.rest('admin'), cluster)


def ceph_backend(cluster, **options):
    return {**cluster.options(), **options, 'share_driver': 'cephfs'}


def test_native_share_moves_to_another_back_end_although_the_service_is_killed(
    ceph, ceph_root, tmp_path
):
    backends = {name: ceph_backend(ceph) for name in ('one', 'two')}
    with deployed(ceph, tmp_path, **backends) as site:

        def top(share):
            return ceph_root.path / site.location(share).partition(':/')[2]

        share = site.create()
        site.wait('share', share)
        home = site.host(share)
        (away,) = {'one#cephfs', 'two#cephfs'} - {home}
        rule = site.allow(share, f'writer-{share[:8]}')
        content.populate(top(share))
        (top(share) / 'large').write_bytes(os.urandom(48 << 20))
        original = content.describe(top(share))
        with site.mounted(share, rule) as client:
            client.write('mine', b'mine')
            client.run('rm mine; sync -f .')
            original = content.describe(top(share))
            site.start(share, *away.split('#'))
            site.wait_for(share, IN_COPY)
            with pytest.raises(ClientError):  # it was cast to read-only
                client.write('more', b'more')
        wait_until(site.copies, 'it is mounted')
        site.kill_and_restart()
        site.wait_for(share, COPIED)
        site.wait_for_no_copy()
        site.cli('share migration cancel', share)
        site.wait_for(share, 'migration_cancelled')
        site.wait_idle()
        assert site.host(share) == home
        assert content.describe(top(share)) == original

        site.start(share, *away.split('#'))
        site.wait_for(share, IN_COPY)
        site.cli('share migration cancel', share)
        site.wait_for(share, 'migration_cancelled')
        site.wait_for_no_copy()
        site.wait_idle()

        site.start(share, *away.split('#'))
        wait_until(site.copies, 'it is mounted')
        site.installation.kill('data')
        site.cli('share migration cancel', share)
        site.installation.start('data')
        site.wait_for(share, 'migration_cancelled')
        assert not site.copies()
        site.wait_idle()
        site.wait_for_no_copy()
        assert content.describe(top(share)) == original

        site.start(share, *away.split('#'))
        site.wait_for(share, IN_COPY)
        site.kill_and_restart()
        site.complete(share)
        assert site.host(share) == away
        assert content.describe(top(share)) == original
        (rule,) = site.rest.get(f'/share-access-rules?share_id={share}')['access_list']
        assert (rule['state'], rule['access_level']) == ('active', 'rw')
        with site.mounted(share, rule) as client:
            client.write('more', b'more')
        site.wait_for_no_copy()
        assert site.subvolumes(backends[home.partition('#')[0]]) == []
        logs = ''.join(
            path.read_text() for path in site.installation.folder.glob('*.log')
        )
        assert 'copy_share' in logs
        assert KEY.findall(logs) == []


def test_native_share_is_backed_up_and_restored(ceph, tmp_path):
    with deployed(ceph, tmp_path, one=ceph_backend(ceph)) as site:
        share = site.create('--name', 'first')
        site.wait('share', share)
        rule = site.allow(share, f'writer-{share[:8]}')
        with site.mounted(share, rule) as client:
            client.run('mkdir -m 700 below; echo then > below/notes; sync -f .')
            site.cli('share backup create', 'first', '--name', 'night')
            site.wait_idle()
            client.run('echo now > below/notes; touch more; sync -f .')
            site.cli('share backup restore', 'night', '--wait')
            site.wait_idle()
            assert client.run('ls; stat -c %a below; cat below/notes').split() == [
                *(b'below', b'700', b'then')
            ]
        site.wait_for_no_copy()


class NfsSite(typing.NamedTuple):
    """A btrfs back end and one with gateways, by the pools that they have."""

    site: Migrations
    root: pathlib.Path
    mount: pathlib.Path
    ports: dict[str, int]

    def top(self, share: str) -> pathlib.Path:
        """Return the directory of a share, wherever it is."""
        path = self._export(share)
        if self.site.host(share).startswith('ceph#'):
            return self.mount / path.lstrip('/')
        (found,) = self.root.glob(f'**/{pathlib.Path(path).name}')
        return found

    def _export(self, share: str) -> str:
        return self.site.location(share).partition(':')[2]

    @contextlib.contextmanager
    def client(self, share: str, address: str):
        """Provide an NFS client, and the path that it mounts."""
        port = self.ports[self.site.host(share).partition('#')[0]]
        with contextlib.closing(NfsClient('127.0.0.1', port, address)) as client:
            yield client, self._export(share)


def test_nfs_share_moves_between_btrfs_and_gateways_in_both_directions(
    ceph, ceph_root, gateways, btrfs_options, tmp_path
):
    disk = {
        **btrfs_options,
        'share_driver': 'btrfs',
        'btrfs_pools': f'pool:{btrfs_options["btrfs_pools"]["pool"]}',
        'btrfs_export_addresses': '127.0.0.1',
    }
    options = gateways.options | {'cephfs_nfs_gateways': ','.join(ADDRESSES)}
    backends = {'disk': disk, 'ceph': ceph_backend(ceph, **options)}
    with deployed(ceph, tmp_path, **backends) as site:
        nfs = NfsSite(
            site,
            pathlib.Path(btrfs_options['btrfs_root']),
            ceph_root.path,
            {'disk': disk['btrfs_nfs_port'], 'ceph': gateways.each[0].port},
        )
        share = site.create(share_proto='NFS')
        site.wait('share', share)
        site.allow(share, '127.0.0.2', kind='ip')
        content.populate(nfs.top(share))
        os.setxattr(nfs.top(share) / 'sealed', 'user.colour', b'red')
        original = content.describe(nfs.top(share))
        hosts = ['disk#pool', 'ceph#cephfs']
        if site.host(share) != hosts[0]:
            hosts.reverse()
        for here, there in (hosts, reversed(hosts)):
            assert site.host(share) == here
            with nfs.client(share, '127.0.0.2') as (client, path):
                in_time(functools.partial(client.read, path, 'sealed'))
                site.start(share, *there.split('#'))
                site.wait_for(share, COPIED)
                with pytest.raises(NfsError, match='ROFS'):
                    client.write(path, 'more', b'more')
            site.complete(share)
            assert site.host(share) == there
            assert content.describe(nfs.top(share)) == original
            assert os.getxattr(nfs.top(share) / 'sealed', 'user.colour') == b'red'
            with nfs.client(share, '127.0.0.2') as (client, path):
                in_time(functools.partial(client.write, path, 'note', there.encode()))
            assert (nfs.top(share) / 'note').read_text() == there
            (nfs.top(share) / 'note').unlink()
            os.utime(nfs.top(share), ns=(original['.'][3],) * 2)
        site.wait_for_no_copy()
        site.cli('share delete', share)
        site.wait_idle()
        assert site.subvolumes(backends['ceph']) == []
