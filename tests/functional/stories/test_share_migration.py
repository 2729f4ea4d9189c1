"""Shares migrate there and back, with the official client."""

from tests.functional.stories import suites
from tests.support.cli import Cli
from tests.support.processes import wait_until

pytestmark = suites.several_backends

NEWEST = '2.95'  # known to the client for share migration
BACKENDS = {'alpha': {}, 'beta': {}}
SERVED = {
    'driver_handles_share_servers': 'true',
    'standalone_network_plugin_gateway': '10.0.0.1',
    'standalone_network_plugin_mask': '24',
}
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
        '--os-auth-type', 'none', '--os-endpoint', installation.url, version=NEWEST
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
        moved = {one['Path'] for one in cli('share export location list', 'first')}
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
    cli('share snapshot create', 'first', '--name', 'taken')
    wait_idle()
    cli('share migration start', 'first', home, *MIGRATION_OPTIONS, code=1)
    there = start('--preserve-snapshots', 'True')
    assert cli('share snapshot show', 'taken')['status'] == 'migrating'
    cli('share snapshot delete', 'taken', code=1)
    cli('share migration complete', 'first')
    wait_for_state('migration_success')
    assert cli('share show', 'first')['host'] == there
    assert cli('share snapshot show', 'taken')['status'] == 'available'
    cli('share snapshot delete', 'taken', '--wait')
    cli('share delete', 'first')
    wait_idle()
    assert installation.problems() == []
    installation.stop()


def test_to_another_network(install):
    installation = install(
        backends={'alpha': SERVED, 'beta': SERVED, 'plain': {}}, options=OPTIONS
    ).start()
    cli = Cli(
        '--os-auth-type', 'none', '--os-endpoint', installation.url, version=NEWEST
    )
    pools = {
        name: f'{installation.service_host(name)}#pool'
        for name in ('alpha', 'beta', 'plain')
    }

    def wait_idle():
        wait_until(lambda: not installation.pending_work(), 'no work left')

    def start(host, *options):
        arguments = ('first', host, *MIGRATION_OPTIONS, *options)
        cli('share migration start', *arguments)
        wait_for_state('migration_driver_phase1_done')

    def wait_for_state(state):
        def is_there():
            found = cli('share migration show', 'first')
            assert found['task_state'] != 'migration_error'
            return found['task_state'] == state

        wait_until(is_there, state)
        wait_idle()

    def migrate(host, *options):
        start(host, *options)
        cli('share migration complete', 'first')
        wait_for_state('migration_success')
        shown = cli('share show', 'first')
        assert (shown['host'], shown['status']) == (host, 'available')
        return shown

    cli('share type create', 'served', 'true')
    cli('share type create', 'plain', 'false')
    red, blue = (
        cli('share network create', '--name', name)['id'] for name in ('red', 'blue')
    )
    cli(
        'share create',
        'NFS',
        '1',
        '--name',
        'first',
        '--share-type',
        'served',
        '--share-network',
        'red',
    )
    wait_idle()
    cli('share access create', 'first', 'ip', '10.1.1.1')
    wait_idle()
    before = cli('share show', 'first')
    (other,) = {pools['alpha'], pools['beta']} - {before['host']}
    start(other, '--new-share-network', 'blue')
    cli('share network delete', 'blue', code=1)
    cli('share network delete', 'red', code=1)
    assert cli('share show', 'first')['share_network_id'] == red
    cli('share migration cancel', 'first')
    wait_for_state('migration_cancelled')
    assert cli('share show', 'first')['host'] == before['host']
    shown = migrate(other)
    assert shown['share_network_id'] == red
    assert shown['share_server_id'] != before['share_server_id']
    shown = migrate(other, '--new-share-network', 'blue')
    assert shown['share_network_id'] == blue
    server = cli('share server show', shown['share_server_id'])
    assert server['share_network_id'] == blue
    (rule,) = cli('share access list', 'first')
    assert (rule['State'], rule['Access To']) == ('active', '10.1.1.1')
    cli('share network delete', 'red')
    cli('share network delete', 'blue', code=1)
    shown = migrate(pools['plain'], '--new-share-type', 'plain')
    assert shown['share_network_id'] is None
    refused = ('first', other, *MIGRATION_OPTIONS, '--new-share-type')
    cli('share migration start', *refused, 'served', code=1)
    shown = migrate(other, '--new-share-type', 'served', '--new-share-network', 'blue')
    assert shown['share_network_id'] == blue
    cli('share delete', 'first')
    wait_idle()
    cli('share network delete', 'blue')
    wait_idle()
    assert installation.problems() == []
    installation.stop()
