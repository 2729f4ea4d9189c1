"""The data service moves the bytes of a share, with the official client."""

import os
import pathlib

from tests.drivers import content
from tests.functional.stories import suites
from tests.support.cli import Cli
from tests.support.processes import wait_until

pytestmark = suites.several_backends

NEWEST = '2.95'  # known to the client for share migration
MIGRATION_OPTIONS = (
    '--writable',
    'False',
    '--nondisruptive',
    'False',
    '--preserve-metadata',
    'True',
    '--preserve-snapshots',
    'False',
    '--force-host-assisted-migration',
    'True',
)


def local(folder):
    return {'share_driver': 'local', 'local_root': folder}


def test_bytes_move_between_back_ends_although_the_service_is_killed(install, tmp_path):
    installation = install(
        backends={name: local(tmp_path / name) for name in ('alpha', 'beta')}
    ).start()
    cli = Cli(
        '--os-auth-type', 'none', '--os-endpoint', installation.url, version=NEWEST
    )

    def wait_idle():
        wait_until(lambda: not installation.pending_work(), 'no work left')

    def wait_for_state(state):
        def is_there():
            found = cli('share migration show', 'first')
            assert found['task_state'] != 'migration_error'
            return found['task_state'] == state

        wait_until(is_there, state)
        wait_idle()

    def directory():
        (location,) = cli('share export location list', 'first')
        return pathlib.Path(location['Path'])

    def start():
        (other,) = pools - {cli('share show', 'first')['host']}
        cli('share migration start', 'first', other, *MIGRATION_OPTIONS)
        return other

    cli('share type create', 'plain', 'false')
    cli('share create', 'NFS', '1', '--name', 'first', '--share-type', 'plain')
    wait_idle()
    cli('share access create', 'first', 'ip', '10.1.1.1')
    wait_idle()
    pools = {f'{installation.service_host(name)}#{name}' for name in ('alpha', 'beta')}
    home = directory()
    content.populate(home)
    (home / 'large').write_bytes(os.urandom(64 << 20))
    original = content.describe(home)
    start()
    wait_for_state('data_copying_completed')
    assert cli('share migration show', 'first')['total_progress'] == 100
    cli('share migration cancel', 'first')
    wait_for_state('migration_cancelled')
    assert directory() == home
    assert content.describe(home) == original

    there = start()
    (process,) = installation.kind
    installation.kill_and_restart(process)
    installation.wait_until_ready()
    wait_for_state('data_copying_completed')
    cli('share migration complete', 'first')
    wait_for_state('migration_success')
    shown = cli('share show', 'first')
    assert (shown['host'], shown['status']) == (there, 'available')
    moved = directory()
    assert moved != home
    assert not home.exists()
    assert content.describe(moved) == original
    (rule,) = cli('share access list', 'first')
    assert (rule['State'], rule['Access Level']) == ('active', 'rw')
    cli('share delete', 'first')
    wait_idle()
    assert not moved.exists()
    assert installation.problems() == []
    installation.stop()
