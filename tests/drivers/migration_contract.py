"""What holds for every driver that share servers can migrate to.

The source and the destination are two back ends of the same driver, whose
sections stand in one file. A driver that takes no server says so.
"""

import dataclasses

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers.base import normalise_export_locations
from manila_lite.share.drivers.contract import server_migrations
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import driver_harness as subjects
from tests.drivers.driver_harness import CTX

METHODS = ('start', 'continue', 'complete', 'cancel', 'get_progress')
ANSWER = set(server_migrations.ServerMigrationCompatibility.__annotations__)
PATIENCE = 20

_FILE = """
[{name}]
share_driver = dummy
driver_handles_share_servers = true
dummy_driver_state_path = {folder}/{name}
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
dummy_driver_server_migration_steps = 3
"""


class MigrationPair:
    """A back end with a server and its share, and one to migrate to."""

    def __init__(self, folder):
        file = folder / 'pair.conf'
        file.write_text(
            ''.join(
                _FILE.format(name=name, folder=folder)
                for name in ('here', 'there')
            )
        )
        self.made = {
            name: subjects.DriverHarness(
                'dummy',
                lambda name=name: Configuration(
                    manila_lite.conf.new(files=[str(file)]), name
                ),
            )
            for name in ('here', 'there')
        }
        self.source, self.target = (
            self.made[name].start() for name in ('here', 'there')
        )
        here = self.made['here']
        info = here.network_info('10.20.0.5')
        self.server = here.server(info, self.source.setup_server(info))
        self.server = dataclasses.replace(self.server, host='host@here')
        self.share = here.share(host='host@here#pool')
        self.source.create_share(CTX, self.share, self.server)
        self.source.write(self.share.id, 'content')
        self.snapshot = here.snapshot(self.share)
        self.source.create_snapshot(CTX, self.snapshot, self.server)

    def destination(self, *addresses):
        """A server to migrate to; one without addresses is not set up."""
        there = self.made['there']
        self.info = there.network_info(*addresses)
        details = self.target.setup_server(self.info) if addresses else {}
        return dataclasses.replace(
            there.server(self.info, details), host='host@there'
        )

    def what(self, destination):
        return (CTX, self.server, destination, [self.share], [self.snapshot])

    def copied(self, destination):
        """The first phase, and the progress that was told in it."""
        what, told = self.what(destination), []
        self.target.share_server_migration_start(*what)
        for _ in range(PATIENCE):
            if self.target.share_server_migration_continue(*what):
                return told
            told.append(
                self.target.share_server_migration_get_progress(*what)[
                    'total_progress'
                ]
            )
        raise AssertionError('the first phase does not end')

    def check(self, server=None, host='host@there'):
        network = {'id': 'network', 'share_network_subnets': []}
        return self.target.share_server_migration_check_compatibility(
            CTX,
            server or self.server,
            host,
            network,
            network,
            {'shares_size': 1, 'snapshots_size': 1, 'shares_req_spec': []},
        )


@pytest.fixture
def pair(tmp_path):
    return MigrationPair(tmp_path)


class MigrationContract:
    """For each driver: it tells whether it takes servers, and never lies."""

    def test_compatibility_is_told_in_the_published_words(self, subject):
        driver = subject.start()
        answer = driver.share_server_migration_check_compatibility(
            CTX,
            subject.server(subject.network_info('10.20.0.5')),
            'host@backend',
            {},
            {},
            {'shares_size': 1, 'snapshots_size': 0, 'shares_req_spec': []},
        )
        assert set(answer) <= ANSWER
        assert all(isinstance(value, bool) for value in answer.values())
        # Of a back end that is not known here nobody can take anything.
        assert not answer['compatible']

    def test_what_is_not_offered_is_not_implemented(self, subject):
        driver = subject.start()
        if subject.driver == 'dummy':
            pytest.skip('the driver implements all')
        for method in METHODS:
            more = [[]] if method == 'complete' else []
            with pytest.raises(NotImplementedError):
                getattr(driver, f'share_server_migration_{method}')(
                    CTX, {}, {}, [], [], *more
                )
        assert (
            driver.choose_share_server_compatible_for_migration(
                CTX, [], {}, [], []
            )
            is None
        )


class MigratedServersContract:
    """Of a driver that takes servers, between two of its back ends."""

    def test_every_method_may_be_called_twice(self, pair):
        destination = pair.destination('10.20.0.9')
        what = pair.what(destination)
        for _ in range(2):
            pair.target.share_server_migration_start(*what)
        pair.copied(destination)
        assert pair.target.share_server_migration_continue(*what)
        answers = [
            pair.target.share_server_migration_complete(*what, pair.info)
            for _ in range(2)
        ]
        assert answers[0] == answers[1]
        assert pair.target.inventory() == {pair.share.id: pair.share.size}
        assert pair.target.read(pair.share.id) == 'content'
        assert pair.source.inventory() == {}
        pair.source.teardown_server({'server_id': pair.server.id})

    def test_exports_are_those_of_the_destination(self, pair):
        destination = pair.destination('10.20.0.9')
        pair.copied(destination)
        answer = pair.target.share_server_migration_complete(
            *pair.what(destination), pair.info
        )
        exports = normalise_export_locations(
            answer['share_updates'][pair.share.id]['export_locations']
        )
        assert any('10.20.0.9' in one['path'] for one in exports)
        assert not any('10.20.0.5' in one['path'] for one in exports)
        assert set(answer['snapshot_updates']) == {pair.snapshot.id}

    def test_without_addresses_those_of_the_source_are_taken_over(self, pair):
        destination = pair.destination()
        pair.copied(destination)
        answer = pair.target.share_server_migration_complete(
            *pair.what(destination), pair.info
        )
        exports = normalise_export_locations(
            answer['share_updates'][pair.share.id]['export_locations']
        )
        assert any('10.20.0.5' in one['path'] for one in exports)

    def test_until_the_second_phase_the_source_is_untouched(self, pair):
        destination = pair.destination('10.20.0.9')
        progress = pair.copied(destination)
        assert progress == sorted(progress)
        assert all(0 <= one <= 100 for one in progress)
        assert pair.target.inventory() == {}
        assert pair.source.inventory() == {pair.share.id: pair.share.size}
        for _ in range(2):
            pair.target.share_server_migration_cancel(*pair.what(destination))
        assert not pair.target.incoming()
        assert pair.source.read(pair.share.id) == 'content'

    def test_what_is_broken_in_the_midst_of_it_loses_nothing(self, pair):
        destination = pair.destination('10.20.0.9')
        pair.copied(destination)
        what = pair.what(destination)
        pair.target.half_fail_next('share_server_migration_complete')
        with pytest.raises(exception.ManilaLiteError):
            pair.target.share_server_migration_complete(*what, pair.info)
        assert pair.source.inventory() == {pair.share.id: pair.share.size}
        pair.target.share_server_migration_complete(*what, pair.info)
        assert pair.target.read(pair.share.id) == 'content'

    def test_partial_capabilities_are_told(self, pair):
        assert all(pair.check().values())
        assert not pair.check(host='host@there#elsewhere')['compatible']
        pair.target.set_migration_capabilities({'compatible', 'writable'})
        assert {name for name, value in pair.check().items() if value} == {
            'compatible',
            'writable',
        }
        stranger = dataclasses.replace(pair.server, host='host@elsewhere')
        assert not any(pair.check(stranger).values())

    def test_a_server_that_is_torn_down_leaves_no_copies(self, pair):
        destination = pair.destination('10.20.0.9')
        pair.copied(destination)
        pair.target.teardown_server({'server_id': destination.id})
        assert not pair.target.incoming()
