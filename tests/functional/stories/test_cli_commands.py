"""Every command of the official command line, on what `make run` starts.

The list of commands is that of the published table; each is run at the
version that the client would choose, and at older ones. The client signs in
as the README says.
"""

import re

from manilaclient import client as manilaclient
from openstack import connection
import pytest

from tests.functional.stories import suites
from tests.functional.stories.command_story import (
    CLIENT_MINIMUM,
    NEWEST,
    CommandStory,
    number,
)
from tests.functional.stories.conftest import running
from tests.support import reference
from tests.support.cli import Cli
from tests.support.make_run import README, MakeRun

VERSIONS = (NEWEST, '2.60', '2.6')


@pytest.fixture
def story(tmp_path, version):
    """A story at one API version, on its own installation."""
    with running(MakeRun(tmp_path / 'run')) as installation:
        installation.start()
        yield CommandStory(installation, version)


@suites.operation
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
        f'openstack {command}': minimum for command, minimum in CLIENT_MINIMUM.items()
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
            lambda: 'share create NFS 1' in command.output, 'prints what to try'
        )
        assert installation.readme_line() in command.output


def test_types_are_those_of_the_readme(tmp_path):
    table = README.read_text().partition('| share type |')[2]
    rows = re.findall(r'^\| `(\w+)` \| (`.+?) \|', table.partition('\n\n')[0], re.M)
    shown = {name: set(re.findall(r'\w+', places)) for name, places in rows}
    with running(MakeRun(tmp_path / 'run')) as installation:
        user = installation.start().rest()
        types = user.get('/types')['share_types']
        assert all(one['description'] for one in types)
        found = {
            one['name']: {
                pool['backend']
                for pool in user.get(
                    f'/scheduler-stats/pools?share_type={one["name"]}'
                )['pools']
            }
            for one in types
        }
    assert found == shown


def test_group_needs_no_type(tmp_path):
    with running(MakeRun(tmp_path / 'run')) as installation:
        cli = Cli(*installation.start().readme_options(), version=NEWEST)
        group = cli('share group create', '--name', 'album', '--wait')
        cli(
            *('share create', 'NFS', '1', '--share-group', 'album', '--wait'),
            *('--name', 'photos'),
        )
        shown = cli('share show', 'photos')
        assert shown['status'] == 'available'
        assert shown['share_group_id'] == group['id']


def test_client_chooses_the_newest_version_it_knows():
    from manilaclient import api_versions

    assert api_versions.MAX_VERSION == NEWEST


@pytest.mark.facts(
    'LP1822815',
    'client-columns',
    'client-empty-count',
    'client-endpoint-override',
    'client-group-header',
    'client-none-name',
    'client-wait',
)
def test_clients_work_as_their_own_notes_say(tmp_path):
    with running(MakeRun(tmp_path / 'run')) as installation:
        options = installation.start().readme_options()
        _check_command_line(Cli(*options, version=NEWEST))
        session = connection.Connection(
            auth_type='none',
            auth={'endpoint': installation.url},
            shared_file_system_default_microversion=NEWEST,
        )
        sdk = session.shared_file_system
        group = sdk.create_share_group(name='album')
        assert sdk.update_share_group(group, name='new').name == 'new'
        nobody = manilaclient.Client(
            NEWEST,
            input_auth_token='nobody:empty',
            service_catalog_url=installation.url,
            project_id='empty',
        )
        found = nobody.shares.list(search_opts={'with_count': True})
        assert tuple(found) == ([], 0)
        elsewhere = Cli(
            *('--os-auth-type', 'none', '--os-endpoint', 'http://127.0.0.1:9'),
            *('--os-endpoint-override', installation.url),
        )
        assert elsewhere('share list') == []
        session.close()


def _check_command_line(cli):
    made = cli('share create', 'NFS', '1', '--name', 'photos', '--wait')
    assert made['status'] == 'available'
    cli('share resize', 'photos', '2', '--wait')
    shown = cli('share show', 'photos')
    assert (shown['status'], shown['size']) == ('available', 2)
    cli('share delete', 'photos', '--wait')
    assert cli('share list') == []
    assert "cannot be with the value 'None'" in cli(
        'share create', 'NFS', '1', '--name', 'None', code=1
    )
    (listed, *_) = cli('share type list')
    assert listed['Required Extra Specs'] == {'driver_handles_share_servers': 'False'}
    table = cli.run('share', 'type', 'list').out
    assert 'driver_handles_share_servers : False' in table
