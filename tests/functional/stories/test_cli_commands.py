"""Every command of the official command line for the implemented features.

The list of commands is that of the published table; each is run at the
version that the client would choose, and at older ones.
"""

import itertools
import re
import urllib.parse

import pytest

from tests.functional.stories import suites
from tests.functional.stories.command_story import CLIENT_MINIMUM
from tests.functional.stories.command_story import NEWEST
from tests.functional.stories.command_story import CommandStory
from tests.functional.stories.command_story import number
from tests.support import keystone_server
from tests.support import reference

pytestmark = suites.operation

# Commands of features not implemented yet, or covered by other stories.
EXCLUDED = re.compile(
    'openstack share (migration|network|replica|security|server)'
)
VERSIONS = (NEWEST, '2.60', '2.6')
PASSWORD = 'a long secret'


class Projects(keystone_server.Keystone):
    """A Keystone that also looks up projects and users by id."""

    def __init__(self):
        super().__init__()
        self._server.RequestHandlerClass = type(
            'Finder', (_Finder,), {'keystone': self}
        )


class _Finder(keystone_server._Handler):
    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        found = re.fullmatch('/v3/(project|user)s/([0-9a-f]{32})', path)
        if found:
            kind, id = found.groups()
            self._answer(200, {kind: {'id': id, 'name': id}})
        else:
            super().do_GET()


@pytest.fixture
def story(install, version):
    """A story at one API version, on its own installation."""
    with Projects() as keystone:
        alice = keystone.add_user(
            'alice', PASSWORD, 'demo', ['admin', 'member', 'reader']
        )
        installation = install(
            auth='keystone',
            sections=keystone.service_config(),
            backends={
                'dummy': {
                    'dummy_driver_capacity_gb': 100,
                    'max_over_subscription_ratio': 1,
                }
            },
        )
        keystone.share_url = installation.url
        installation.start()
        options = itertools.chain.from_iterable(
            (f'--os-{name.replace("_", "-")}', value)
            for name, value in keystone.client_options(alice).items()
        )
        yield CommandStory(
            installation,
            alice,
            ['--os-auth-type', 'password', *options],
            version,
        )


@pytest.mark.parametrize('version', VERSIONS)
def test_every_command_works(story, version):
    for part in (
        story.types,
        story.group_types,
        story.qos_types,
        story.quotas,
        story.services,
        story.shares,
        story.instances,
        story.access,
        story.snapshots,
        story.adopted,
        story.backups,
        story.groups,
        story.transfers,
        story.messages,
        story.ends,
    ):
        part()
    assert published(version) - story.cli.ran == set()


def published(version):
    """Return the commands of the table that this version supports."""
    since = {
        row['command']: row['min_microversion'].split()[0]
        for row in reference.table('cli-commands.csv')
        if not EXCLUDED.match(row['command'])
    }
    since |= {
        f'openstack {command}': minimum
        for command, minimum in CLIENT_MINIMUM.items()
    }
    return {
        command
        for command, minimum in since.items()
        if number(minimum) <= number(version)
    }


def test_client_chooses_the_newest_version_it_knows():
    from manilaclient import api_versions

    assert api_versions.MAX_VERSION == NEWEST
