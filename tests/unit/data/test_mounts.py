"""Shares on CephFS, as the data service mounts and copies them."""

import contextlib
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import typing

import pytest

from manila_lite import exception
from manila_lite.data import copying, mounts
from manila_lite.data.gate import Copying
from manila_lite.data.mounts import CephMounts
from tests.drivers import content
from tests.drivers.driver_harness import CTX
from tests.support import ceph as ceph_support, sampling
from tests.unit.share.drivers.cephfs.sites import new_harness

pytestmark = [ceph_support.limited, ceph_support.on_cluster]

KILLED = 9
_processes = multiprocessing.get_context('forkserver')


def nothing(*args):
    pass


class KillAt:
    """Ends the process at a step; counts steps otherwise."""

    def __init__(self, number: int | None = None):
        self.number = number
        self.count = 0

    def __call__(self, name: str) -> None:
        self.count += 1
        if self.count == self.number:
            os._exit(KILLED)


def copy(source, into: int, on_step=nothing) -> None:
    """Copy a directory into an open one, as an attempt of a migration does."""
    how = Copying(nothing, nothing, nothing, token=1, on_step=on_step)
    origin = source if isinstance(source, int) else os.open(source, os.O_RDONLY)
    copying.copy_tree(origin, into, how, is_resumed=True)


def copy_until(number, source, folder, location) -> None:
    """Do it in a process that is killed at a step."""
    with CephMounts(folder).mounted('an-id', location) as into:
        copy(source, into, KillAt(number))


class Site(typing.NamedTuple):
    """A back end with shares, and a folder for mounts."""

    harness: typing.Any
    driver: typing.Any
    folder: pathlib.Path

    def share(self):
        share = self.harness.share()
        self.driver.create_share(CTX, share)
        return share

    def connect(self, share):
        return self.driver.connection_get_info(CTX, share)['ceph']

    def mounted(self, location):
        return CephMounts(self.folder).mounted('an-id', location)

    @contextlib.contextmanager
    def opened(self, share):
        with self.mounted(self.connect(share)) as directory:
            yield directory
        self.driver.connection_end(CTX, share)

    def users(self, share) -> set[str]:
        backend = self.driver.backend
        subvolume = backend.get_share(share)['subvolume']
        found = backend.ask('subvolume authorized_list', sub_name=subvolume)
        return {user for one in found for user in one}

    def leftovers(self) -> list[str]:
        found = os.listdir(self.folder)
        mounted = pathlib.Path('/proc/self/mounts').read_text()
        return found + [
            line for line in mounted.split('\n') if str(self.folder) in line
        ]


@pytest.fixture
def site(ceph, tmp_path):
    harness = new_harness(ceph)
    yield Site(harness, harness.start(), tmp_path / 'mounts')
    with contextlib.suppress(exception.DriverError):
        harness.clean_up()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / 'source'
    path.mkdir()
    return path


def path_of(directory: int) -> pathlib.Path:
    return pathlib.Path(f'/proc/self/fd/{directory}').resolve()


def test_all_is_copied_to_a_share_and_from_it_and_no_access_is_left(
    site, folder, tmp_path
):
    content.populate(folder)
    os.setxattr(folder / 'sealed', 'user.colour', b'red')
    (folder / 'large').write_bytes(os.urandom(5 << 20))
    os.truncate(folder / 'large', 64 << 20)
    share, other, back = site.share(), site.share(), tmp_path / 'back'
    back.mkdir()
    with site.opened(share) as into:
        assert len(site.users(share)) == 1
        copy(folder, into)
    with site.opened(share) as source:
        assert content.describe(path_of(source)) == content.describe(folder)
        with site.opened(other) as into:
            copy(source, into)
    with site.opened(other) as source:
        assert os.getxattr(path_of(source) / 'sealed', 'user.colour') == b'red'
        directory = os.open(back, os.O_RDONLY)
        copy(source, directory)
        os.close(directory)
    assert content.describe(back) == content.describe(folder)
    assert (back / 'large').stat().st_blocks * 512 <= 8 << 20  # holes are holes
    assert site.users(share) == site.users(other) == set()
    assert site.leftovers() == []


def test_holes_of_a_file_take_no_space_in_the_cluster(site, folder, ceph):
    (folder / 'holes').write_bytes(b'')
    os.truncate(folder / 'holes', 200 << 20)
    share = site.share()
    with site.opened(share) as into:
        copy(folder, into)
    with site.opened(share) as source:
        inode = (path_of(source) / 'holes').stat().st_ino
        copy(source, os.open(folder, os.O_RDONLY))
    pool = site.driver.backend.data_pool
    rados = ['rados', '-c', ceph.conf, '-p', pool, '--all', 'ls']
    objects = subprocess.run(rados, check=True, capture_output=True).stdout.decode()
    assert [one for one in objects.split() if one.startswith(f'{inode:x}.')] == []


@sampling.enumeration
def test_copy_that_is_killed_at_any_step_is_completed_by_the_next(site, folder):
    content.sketch(folder)
    (folder / 'directory' / 'more').write_bytes(os.urandom(1 << 20))
    share, whole = site.share(), KillAt()
    with site.opened(share) as into:
        copy(folder, into, whole)
    for number in sampling.sample(range(1, whole.count + 1), 4):
        share = site.share()
        process = _processes.Process(
            target=copy_until, args=(number, folder, site.folder, site.connect(share))
        )
        process.start()
        process.join(60)
        assert process.exitcode == KILLED
        assert len(site.users(share)) == 1
        with site.opened(share) as into:
            copy(folder, into)
        with site.opened(share) as source:
            found = content.describe(path_of(source))
        assert found == content.describe(folder), f'killed at step {number}'
        assert site.users(share) == set()
        assert site.leftovers() == []
        site.driver.delete_share(CTX, share)


def test_next_connection_cuts_off_what_an_earlier_one_still_writes(site):
    share = site.share()

    def write_late():
        with site.mounted(site.connect(share)) as late:
            (path_of(late) / 'early').write_text('early')
            with site.opened(share) as directory:
                with pytest.raises(OSError, match="/late'"):
                    (path_of(late) / 'late').write_text('late')
                assert os.listdir(directory) == ['early']
            (path_of(late) / 'late').write_text('late')

    with pytest.raises(exception.ServiceUnavailable, match='cut off'):
        write_late()
    assert site.users(share) == set()


def test_connection_that_ended_is_not_mounted_again(site):
    share = site.share()
    location = site.connect(share)
    site.driver.connection_end(CTX, share)
    site.driver.connection_end(CTX, share)
    with (
        pytest.raises(exception.ContentUnreachable, match='ceph-fuse'),
        site.mounted(location),
    ):
        pass
    assert site.leftovers() == []


def test_share_without_its_client_is_refused_with_the_reason(site, monkeypatch):
    location = site.connect(site.share())
    monkeypatch.setenv('PATH', '/nowhere')
    with (
        pytest.raises(exception.ContentUnreachable, match='not installed'),
        site.mounted(location),
    ):
        pass


def test_cluster_that_does_not_answer_is_tried_again(site, monkeypatch):
    location = {**site.connect(site.share()), 'monitors': '192.0.2.1:6789'}
    monkeypatch.setattr(mounts, 'MOUNT_SECONDS', 1.5)
    with (
        pytest.raises(exception.ServiceUnavailable, match='does not answer'),
        site.mounted(location),
    ):
        pass
    assert site.leftovers() == []


def test_deleted_share_has_no_connection(site):
    share = site.share()
    site.connect(share)
    site.driver.delete_share(CTX, share)
    site.driver.connection_end(CTX, share)
    with pytest.raises(exception.ShareResourceNotFound):
        site.connect(share)


def test_key_is_on_no_command_line_and_in_no_file_after_the_mount(site):
    location = site.connect(site.share())
    with site.mounted(location) as directory:
        found = path_of(directory).parent
        commands = [
            path.read_bytes()
            for path in pathlib.Path('/proc').glob('[0-9]*/cmdline')
            if path.exists()
        ]
        assert not any(location['key'].encode() in one for one in commands)
        assert found.stat().st_mode & 0o777 == 0o700
        assert not any(
            location['key'] in path.read_text()
            for path in found.iterdir()
            if path.is_file()
        )


CAPABILITIES = '+chown,+dac_override,+fowner,+sys_admin'
"""Those of the unit of the data service, with what its page adds for Ceph."""

AS_A_SERVICE = """
import json, os, pathlib, sys
from tests.unit.data.test_mounts import copy
from manila_lite.data.mounts import CephMounts
source, folder, location = sys.argv[1:]
assert os.getuid() == 65534
with CephMounts(pathlib.Path(folder)).mounted('an-id', json.loads(location)) as into:
    copy(source, into)
"""


def test_data_service_that_is_not_root_copies_with_the_capabilities_of_its_unit(
    site, folder, tmp_path
):
    content.populate(folder)
    os.chown(folder / 'sealed', 1234, 1235)
    share, home = site.share(), tmp_path / 'home'
    home.mkdir()
    os.chown(home, 65534, 65534)
    as_service = [
        *('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'),
        *(f'--inh-caps={CAPABILITIES}', f'--ambient-caps={CAPABILITIES}'),
        *(f'--bounding-set=-all,{CAPABILITIES}', '--no-new-privs'),
    ]
    script = [sys.executable, '-c', AS_A_SERVICE, folder, home / 'mounts']
    subprocess.run(
        [*as_service, *script, json.dumps(site.connect(share))],
        check=True,
        timeout=60,
        cwd=sampling.ROOT,
    )
    with site.opened(share) as source:
        assert content.describe(path_of(source)) == content.describe(folder)
