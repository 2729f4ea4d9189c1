"""What the official command line prints where something is refused."""

import itertools
import uuid

import pytest

from tests.functional.stories import refused_commands
from tests.functional.stories.conftest import new_installation
from tests.support import reference
from tests.support.cli import Cli, command_of

PASSWORD = 'a long secret'
PROJECT = 'red'


class People:
    """An installation, its users by role, and resources by name."""

    def __init__(self, installation):
        self.installation = installation
        for name in ('admin', 'reader'):
            installation.manage(
                'user',
                'add',
                name,
                '--user-id',
                name,
                '--project',
                PROJECT,
                '--role',
                name,
                stdin=f'{PASSWORD}\n',
            )
        installation.start()
        rest = installation.rest(headers={}, auth=('admin', PASSWORD))
        rest.make_default_type()
        broken = rest.create_available()['id']
        rest.act(broken, 'reset_status', {'status': 'error'})
        network = rest.request('POST', '/share-networks', {'share_network': {}})
        self.names = {
            'ID': str(uuid.uuid4()),
            'HOST': f'{installation.service_host()}#pool',
            'PROJECT': PROJECT,
            'SHARE': rest.create_available()['id'],
            'BROKEN': broken,
            'NETWORK': network['share_network']['id'],
        }

    def cli(self, name, password=PASSWORD):
        options = {
            'auth_type': 'password',
            'auth_url': f'{self.installation.root}/v3',
            'username': name,
            'password': password,
            'project_name': PROJECT,
            'user_domain_name': 'Default',
            'project_domain_name': 'Default',
        }
        return Cli(
            *itertools.chain.from_iterable(
                (f'--os-{key.replace("_", "-")}', value)
                for key, value in options.items()
            )
        )

    def _named(self, text):
        return ' '.join(self.names.get(word, word) for word in text.split())

    def problems(self, cli, line, *texts):
        """Return what is wrong with the refusal of a command."""
        ended = cli.run(*self._named(line).split())
        printed = ended.out + ended.err
        if ended.code == 0:
            yield f'{line}: was not refused'
        if 'Traceback' in printed:
            yield f'{line}: {printed}'
        for text in map(self._named, texts):
            # The client writes nouns without spaces.
            if _plain(text) not in _plain(printed):
                yield f'{line}: "{text}" is not in "{printed}"'


def _plain(text):
    return ''.join(text.lower().split())


@pytest.fixture(scope='module')
def people(tmp_path_factory):
    with new_installation(
        tmp_path_factory.mktemp('refusals') / 'installation',
        auth='http_basic',
        options='default_share_type = default',
    ) as installation:
        yield People(installation)


def test_unknown_resource_is_named(people):
    cli = people.cli('admin')
    assert [
        problem
        for noun, lines in refused_commands.UNKNOWN.items()
        for line in lines
        for problem in people.problems(cli, line, noun, 'ID')
    ] == []


def test_missing_role_is_told_with_the_rule(people):
    cli = people.cli('reader')
    assert [
        problem
        for rule, line in refused_commands.WITHOUT_ROLE.items()
        for problem in people.problems(cli, line, rule, '403')
    ] == []


def test_bad_value_or_state_is_named(people):
    cli = people.cli('admin')
    assert [
        problem
        for line, text in refused_commands.INVALID.items()
        for problem in people.problems(cli, line, text)
    ] == []


def test_refused_sign_in_is_told(people):
    users = itertools.cycle(['admin', 'reader'])  # attempts are limited
    for user, line in zip(users, refused_commands.WITHOUT_REFUSAL, strict=False):
        cli = people.cli(user, password='wrong')
        assert list(people.problems(cli, line, '401')) == []


def test_every_command_is_refused_in_some_way():
    lines = [
        *itertools.chain.from_iterable(refused_commands.UNKNOWN.values()),
        *refused_commands.WITHOUT_ROLE.values(),
        *refused_commands.INVALID,
        *refused_commands.WITHOUT_REFUSAL,
    ]
    published = {
        row['command'].removeprefix('openstack ')
        for row in reference.table('cli-commands.csv')
    }
    assert published - {command_of(line.split()) for line in lines} == set()
