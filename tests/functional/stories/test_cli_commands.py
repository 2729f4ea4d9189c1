"""Every command of the official command line, on what `make run` starts.

The list of commands is that of the published table; each is run at the
version that the client would choose, and at older ones. The client signs in
as the README says.
"""

import pytest

from tests.functional.stories import suites
from tests.functional.stories.command_story import CLIENT_MINIMUM
from tests.functional.stories.command_story import NEWEST
from tests.functional.stories.command_story import CommandStory
from tests.functional.stories.command_story import number
from tests.functional.stories.conftest import running
from tests.support import reference
from tests.support.make_run import MakeRun

pytestmark = suites.operation

VERSIONS = (NEWEST, '2.60', '2.6')


@pytest.fixture
def story(tmp_path, version):
    """A story at one API version, on its own installation."""
    with running(MakeRun(tmp_path / 'run')) as installation:
        installation.start()
        yield CommandStory(installation, version)


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
        story.networks,
        story.replicas,
        story.migrations,
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
    }
    if version == NEWEST:
        assert len(since) == 154
    else:
        # Other stories have them, at versions of their own.
        since = {
            command: minimum
            for command, minimum in since.items()
            if not command.startswith(ELSEWHERE)
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


ELSEWHERE = tuple(
    f'openstack share {noun} '
    for noun in ('migration', 'network', 'replica', 'security', 'server')
)


def test_service_prints_the_line_of_the_readme(tmp_path):
    with running(MakeRun(tmp_path / 'run')) as installation:
        command = installation.start().running['serve']
        command.wait_for(
            lambda: 'share create NFS 1' in command.output,
            'prints what to try',
        )
        assert installation.readme_line() in command.output


def test_client_chooses_the_newest_version_it_knows():
    from manilaclient import api_versions

    assert api_versions.MAX_VERSION == NEWEST
