"""A share server that moves there and back, with the official client.

On one process, and on separate services of which two are share services:
each has a file with the sections of both back ends, and runs one.
"""

import contextlib

from tests.support.cli import Cli
from tests.support.installation import SEPARATE
from tests.support.processes import Command
from tests.support.processes import wait_until

NEWEST = '2.95'  # that the client knows of the migration of servers
SERVED = {
    'driver_handles_share_servers': 'true',
    'standalone_network_plugin_gateway': '10.0.0.1',
    'standalone_network_plugin_mask': '24',
}
BACKENDS = {'alpha': SERVED, 'beta': SERVED}
OPTIONS = 'server_migration_driver_continue_update_interval = 1\n'
DEMANDS = (
    '--writable',
    'False',
    '--nondisruptive',
    'False',
    '--preserve-snapshots',
    'True',
)


class Story:
    """The commands, and where the back ends are."""

    def __init__(self, installation, hosts):
        self.installation = installation
        self.hosts = set(hosts)
        self.cli = Cli(
            '--os-auth-type',
            'none',
            '--os-endpoint',
            installation.url,
            version=NEWEST,
        )

    def quiet(self):
        wait_until(
            lambda: not self.installation.pending_work(), 'nothing is owed'
        )

    def elsewhere(self, server):
        (host,) = self.hosts - {self.cli('share server show', server)['host']}
        return host

    def reaches(self, server, state):
        """Wait for a state of the task; what is known then."""
        found = {}

        def is_there():
            found.update(self.cli('share server migration show', server))
            assert found['task_state'] != 'migration_error'
            return found['task_state'] == state

        wait_until(is_there, state)
        return found

    def begin(self, server):
        """The first phase, up to its end."""
        host = self.elsewhere(server)
        checked = self.cli(
            'share server migration start',
            server,
            host,
            *DEMANDS,
            '--check-only',
        )
        assert checked['compatible'] is True
        self.cli('share server migration start', server, host, *DEMANDS)
        self.cli(
            'share server migration start', server, host, *DEMANDS, code=1
        )
        found = self.reaches(server, 'migration_driver_phase1_done')
        assert found['total_progress'] == 100
        return found['destination_share_server_id']

    def move(self, server):
        there = self.begin(server)
        self.cli('share server migration complete', server)
        assert (
            self.reaches(server, 'migration_success')[
                'destination_share_server_id'
            ]
            == there
        )
        self.quiet()
        self.cli('share server show', server, code=1)
        return there


def live_through(story):
    cli = story.cli
    cli('share type create', 'served', 'true', '--snapshot-support', 'true')
    cli('share network create', '--name', 'net')
    cli(
        'share create',
        'NFS',
        '1',
        '--name',
        'first',
        '--share-network',
        'net',
        '--share-type',
        'served',
        '--property',
        'color=red',
    )
    story.quiet()
    cli('share access create', 'first', 'ip', '10.1.1.1')
    cli('share snapshot create', 'first', '--name', 'before')
    story.quiet()
    (server,) = (one['ID'] for one in cli('share server list'))
    paths = {one['Path'] for one in cli('share export location list', 'first')}
    story.begin(server)
    cli('share server migration cancel', server)
    story.reaches(server, 'migration_cancelled')
    story.quiet()
    assert cli('share server show', server)['status'] == 'active'
    assert len(cli('share server list')) == 1
    homes = [cli('share show', 'first')['host'].partition('#')[0]]
    for _ in range(2):
        server = story.move(server)
        shown = cli('share show', 'first')
        homes.append(shown['host'].partition('#')[0])
        assert shown['status'] == 'available'
        assert shown['properties'] == {'color': 'red'}
        assert shown['share_server_id'] == server
        (rule,) = cli('share access list', 'first')
        assert (rule['State'], rule['Access To']) == ('active', '10.1.1.1')
        assert cli('share snapshot show', 'before')['status'] == 'available'
        moved = {
            one['Path'] for one in cli('share export location list', 'first')
        }
        assert not moved & paths
        paths = moved
    assert homes[0] == homes[2] != homes[1]
    cli('share server set', server, '--task-state', 'migration_error')
    cli('share server migration complete', server, code=1)
    cli('share snapshot delete', 'before')
    story.quiet()
    cli('share delete', 'first')
    story.quiet()


def test_in_one_process(install):
    installation = install(backends=BACKENDS, options=OPTIONS).start()
    live_through(Story(installation, map(installation.service_host, BACKENDS)))
    assert installation.problems() == []
    installation.stop()


def test_between_two_share_services(install, new_database, broker_url):
    installation = install(
        kind=SEPARATE,
        backends=BACKENDS,
        database_url=new_database('mysql'),
        options=f'{OPTIONS}transport_url = {broker_url}',
    )
    text = installation.conf.read_text()
    other = installation.conf.with_name('other.conf')
    other.write_text(
        text.replace(
            'enabled_share_backends = alpha,beta',
            'enabled_share_backends = beta',
        ).replace(
            f'host = {installation.host}\n',
            f'host = {installation.host}-other\n',
        )
    )
    installation.conf.write_text(
        text.replace(
            'enabled_share_backends = alpha,beta',
            'enabled_share_backends = alpha',
        )
    )
    installation.backends = ('alpha',)
    installation.start()
    second = Command(
        'manila-lite-share',
        '--config-file',
        other,
        log=installation.folder / 'second-share.log',
        concurrency=installation.concurrency,
    )
    there = f'{installation.host}-other@beta'
    with contextlib.ExitStack() as stack:
        stack.callback(second.kill)
        second.wait_for(
            lambda: f'Back end {there} is up' in second.output,
            'the second share service is up',
        )
        live_through(
            Story(installation, [installation.service_host('alpha'), there])
        )
    installation.stop()
