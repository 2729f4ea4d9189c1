"""A share server migrates there and back, with the official client.

In one process, and with separate services of which two are share services:
each has a file with the sections of both back ends, and runs one.
"""

import contextlib

from tests.functional.stories import suites
from tests.support.cli import Cli
from tests.support.installation import SEPARATE
from tests.support.processes import Command, wait_until

pytestmark = suites.several_backends

NEWEST = '2.95'  # known to the client for server migration
SERVED = {
    'driver_handles_share_servers': 'true',
    'standalone_network_plugin_gateway': '10.0.0.1',
    'standalone_network_plugin_mask': '24',
}
BACKENDS = {'alpha': SERVED, 'beta': SERVED}
OPTIONS = 'server_migration_driver_continue_update_interval = 1\n'
MIGRATION_OPTIONS = (
    '--writable',
    'False',
    '--nondisruptive',
    'False',
    '--preserve-snapshots',
    'True',
)


class Story:
    """The command line, and the hosts of the back ends."""

    def __init__(self, installation, hosts):
        self.installation = installation
        self.hosts = set(hosts)
        self.cli = Cli(
            '--os-auth-type', 'none', '--os-endpoint', installation.url, version=NEWEST
        )

    def wait_idle(self):
        wait_until(lambda: not self.installation.pending_work(), 'no work is pending')

    def other_host(self, server):
        (host,) = self.hosts - {self.cli('share server show', server)['host']}
        return host

    def wait_for_state(self, server, state):
        """Wait for a task state; return the migration then."""
        found = {}

        def is_there():
            found.update(self.cli('share server migration show', server))
            assert found['task_state'] != 'migration_error'
            return found['task_state'] == state

        wait_until(is_there, state)
        return found

    def run_first_phase(self, server):
        """Run the first phase; return the id of the destination server."""
        host = self.other_host(server)
        checked = self.cli(
            'share server migration start',
            server,
            host,
            *MIGRATION_OPTIONS,
            '--check-only',
        )
        assert checked['compatible'] is True
        self.cli('share server migration start', server, host, *MIGRATION_OPTIONS)
        self.cli(
            'share server migration start', server, host, *MIGRATION_OPTIONS, code=1
        )
        found = self.wait_for_state(server, 'migration_driver_phase1_done')
        assert found['total_progress'] == 100
        return found['destination_share_server_id']

    def migrate(self, server):
        there = self.run_first_phase(server)
        self.cli('share server migration complete', server)
        assert (
            self.wait_for_state(server, 'migration_success')[
                'destination_share_server_id'
            ]
            == there
        )
        self.wait_idle()
        self.cli('share server show', server, code=1)
        return there


def run_story(story):
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
    story.wait_idle()
    cli('share access create', 'first', 'ip', '10.1.1.1')
    cli('share snapshot create', 'first', '--name', 'before')
    story.wait_idle()
    (server,) = (one['ID'] for one in cli('share server list'))
    paths = {one['Path'] for one in cli('share export location list', 'first')}
    story.run_first_phase(server)
    cli('share server migration cancel', server)
    story.wait_for_state(server, 'migration_cancelled')
    story.wait_idle()
    assert cli('share server show', server)['status'] == 'active'
    assert len(cli('share server list')) == 1
    hosts = [cli('share show', 'first')['host'].partition('#')[0]]
    for _ in range(2):
        server = story.migrate(server)
        shown = cli('share show', 'first')
        hosts.append(shown['host'].partition('#')[0])
        assert shown['status'] == 'available'
        assert shown['properties'] == {'color': 'red'}
        assert shown['share_server_id'] == server
        (rule,) = cli('share access list', 'first')
        assert (rule['State'], rule['Access To']) == ('active', '10.1.1.1')
        assert cli('share snapshot show', 'before')['status'] == 'available'
        moved = {one['Path'] for one in cli('share export location list', 'first')}
        assert not moved & paths
        paths = moved
    assert hosts[0] == hosts[2] != hosts[1]
    cli('share server set', server, '--task-state', 'migration_error')
    cli('share server migration complete', server, code=1)
    cli('share snapshot delete', 'before')
    story.wait_idle()
    cli('share delete', 'first')
    story.wait_idle()


def test_in_one_process(install):
    installation = install(backends=BACKENDS, options=OPTIONS).start()
    run_story(Story(installation, map(installation.service_host, BACKENDS)))
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
            'enabled_share_backends = alpha,beta', 'enabled_share_backends = beta'
        ).replace(
            f'host = {installation.host}\n', f'host = {installation.host}-other\n'
        )
    )
    installation.conf.write_text(
        text.replace(
            'enabled_share_backends = alpha,beta', 'enabled_share_backends = alpha'
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
        forked=installation.forked,
    )
    there = f'{installation.host}-other@beta'
    with contextlib.ExitStack() as stack:
        stack.callback(second.kill)
        second.wait_for(
            lambda: f'Back end {there} is up' in second.output,
            'the second share service is up',
        )
        run_story(Story(installation, [installation.service_host('alpha'), there]))
    installation.stop()
