"""A share migrates there and back, with the official client."""

from tests.support.cli import Cli
from tests.support.processes import wait_until

NEWEST = '2.95'  # known to the client for share migration
BACKENDS = {'alpha': {}, 'beta': {}}
OPTIONS = 'migration_driver_continue_update_interval = 1\n'
MIGRATION_OPTIONS = (
    '--writable',
    'False',
    '--nondisruptive',
    'False',
    '--preserve-metadata',
    'True',
    '--preserve-snapshots',
    'False',
)


def test_there_and_back(install):
    installation = install(backends=BACKENDS, options=OPTIONS).start()
    cli = Cli(
        '--os-auth-type',
        'none',
        '--os-endpoint',
        installation.url,
        version=NEWEST,
    )
    pools = {f'{installation.service_host(name)}#pool' for name in BACKENDS}

    def wait_idle():
        wait_until(lambda: not installation.pending_work(), 'no work left')

    def wait_for_state(state):
        def is_there():
            found = cli('share migration show', 'first')
            assert found['task_state'] != 'migration_error'
            return found['task_state'] == state

        wait_until(is_there, state)
        wait_idle()

    def start(*options):
        (other,) = pools - {cli('share show', 'first')['host']}
        arguments = ('first', other, *MIGRATION_OPTIONS, *options)
        cli('share migration start', *arguments)
        cli('share migration start', *arguments, code=1)
        wait_for_state('migration_driver_phase1_done')
        shown = cli('share migration show', 'first')
        assert shown['total_progress'] == 100
        assert cli('share show', 'first')['status'] == 'migrating'
        return other

    cli('share type create', 'plain', 'false')
    cli(
        'share create',
        'NFS',
        '1',
        '--name',
        'first',
        '--share-type',
        'plain',
        '--property',
        'color=red',
    )
    wait_idle()
    cli('share access create', 'first', 'ip', '10.1.1.1')
    wait_idle()
    home = cli('share show', 'first')['host']
    cli('share migration show', 'first', code=1)
    start()
    cli('share migration cancel', 'first')
    wait_for_state('migration_cancelled')
    assert cli('share show', 'first')['host'] == home
    paths = {one['Path'] for one in cli('share export location list', 'first')}
    for _ in range(2):
        there = start()
        cli('share migration complete', 'first')
        wait_for_state('migration_success')
        shown = cli('share show', 'first')
        assert shown['host'] == there
        assert shown['status'] == 'available'
        assert shown['properties'] == {'color': 'red'}
        (rule,) = cli('share access list', 'first')
        assert (rule['State'], rule['Access To']) == ('active', '10.1.1.1')
        moved = {
            one['Path'] for one in cli('share export location list', 'first')
        }
        assert not moved & paths
        paths = moved
    assert cli('share show', 'first')['host'] == home
    cli('share type create', 'gold', 'false', '--snapshot-support', 'true')
    start('--new-share-type', 'gold')
    assert cli('share show', 'first')['share_type_name'] == 'plain'
    cli('share migration complete', 'first')
    wait_for_state('migration_success')
    shown = cli('share show', 'first')
    assert shown['share_type_name'] == 'gold'
    assert shown['snapshot_support'] is True
    cli('share type delete', 'plain')
    cli('share type delete', 'gold', code=1)
    cli('share delete', 'first')
    wait_idle()
    assert installation.problems() == []
    installation.stop()
