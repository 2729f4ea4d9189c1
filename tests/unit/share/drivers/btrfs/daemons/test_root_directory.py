"""Where a back end has its files, and who can change them."""

import pathlib
import re
import stat
import subprocess

from manila_lite.cmd.manage import main
import manila_lite.conf
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.btrfs.daemons import root_directory
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness
from tests.support import command_line, storage, units
from tests.support.nfs_client import NfsClient

PAGE = pathlib.Path('doc/source/btrfs_storage.rst')


def test_pools_are_mounted_in_no_directory_that_systemd_changes():
    given = {
        pathlib.Path('/var/lib', name)
        for unit in (*units.FOLDER.glob('*.service'), *units.FOLDER.glob('*.d/*.conf'))
        for name in units.settings(unit, 'StateDirectory')
    }
    configuration = manila_lite.conf.new()
    manila_lite.conf.register_backend(configuration, 'fast')
    root = pathlib.Path(configuration['fast'].btrfs_root)
    assert given
    assert root.is_absolute()
    assert not any(root.is_relative_to(path) for path in given)


def test_root_of_the_back_end_is_closed_to_other_services(tmp_path):
    """They may be of the same user, and have no capabilities."""
    storage.require()
    folder = tmp_path / 'new' / 'root'
    root_directory.prepare(folder)
    for path, mode in ((folder.parent, 0o711), (folder, 0o700)):
        found = path.stat()
        assert (found.st_uid, found.st_gid) == (0, 0)
        assert stat.S_IMODE(found.st_mode) == mode


def test_root_that_others_can_replace_is_warned_of(tmp_path, caplog):
    storage.require()
    open_folder = tmp_path / 'open'
    open_folder.mkdir()
    open_folder.chmod(0o777)
    root_directory.prepare(open_folder / 'root')
    assert f'{open_folder}; move it' in caplog.text


def test_back_end_is_moved_by_the_documented_commands():
    storage.require()
    with storage.folder() as folder:
        options = storage.options(folder)
        harness = DriverHarness('btrfs', lambda: Configuration.from_values(options))
        driver, share = harness.start(), harness.share()
        locations = normalise_export_locations(driver.create_share(CTX, share))
        path = locations[0]['path'].partition(':/')[2]
        rule = harness.rule(share, '127.0.0.2')
        driver.update_access(CTX, share, [rule], [], [], [])
        port = options['btrfs_nfs_port']
        client = NfsClient('127.0.0.1', port, '127.0.0.2')
        client.write(path, 'notes', b'before')
        client.close()
        old, new = options['btrfs_root'], folder / 'new' / 'root'
        command_line.run(main, ['storage', 'stop', '--root', old], '')
        for command in re.findall(
            r'^   # ((?:install|mv|grep) .*)$', PAGE.read_text(), re.M
        ):
            subprocess.run(
                command.replace('/var/lib/manila-btrfs/fast', str(new))
                .replace('/var/lib/manila/fast', old)
                .replace('/var/lib/manila-btrfs', str(new.parent)),
                shell=True,
                check=True,
            )
        assert not pathlib.Path(old).exists()
        options['btrfs_root'] = str(new)
        harness.start()
        client = NfsClient('127.0.0.1', port, '127.0.0.2')
        assert client.read(path, 'notes') == b'before'
        client.close()
