"""The lines of "Installing" that make accounts on the servers."""

import pathlib
import re
import shlex
import shutil
import subprocess
import uuid

import kombu
import pytest
import sqlalchemy as sa

from tests.functional.stories import suites, test_keystone
from tests.support import broker, mariadb_server, postgresql_server, requirements

pytestmark = suites.operation

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / 'doc/source/install.rst').read_text()
EXAMPLE = (ROOT / 'etc/manila_lite/manila_lite.conf.example').read_text()


def lines(program):
    """Return the lines of the page that run a program, without prompts."""
    part = PAGE.partition('Accounts for separate services\n')[2]
    part = part.partition('\nOn a server\n')[0]
    found = re.findall(rf'^   [#$] (.*\b{program} .+)$', part, re.MULTILINE)
    assert found
    return found


def url_of(option):
    """Return a URL of the example, with the password of the page."""
    (url,) = re.findall(rf'^{option} = (.+)$', EXAMPLE, re.MULTILINE)
    return url.replace('<password>', 'secret')


def run(line, *more, program=None):
    """Run a line of the page, with more arguments of a program in it."""
    words = shlex.split(line)
    at = words.index(program or words[0]) + 1
    ended = subprocess.run(
        [*words[:at], *more, *words[at:]],
        cwd='/',
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_database_of_mariadb_is_that_of_the_example(tmp_path):
    with mariadb_server.run(tmp_path) as server:
        # The user that tests have otherwise has the same name.
        server.execute(f"DROP USER {mariadb_server.USER}@'127.0.0.1'")
        for line in lines('mariadb'):
            run(line, *('--no-defaults', f'--socket={tmp_path}/socket'), '--user=root')
        url = url_of('connection').replace('<database>', f'127.0.0.1:{server.port}')
        tables_can_be_made(url)


def test_the_database_of_postgresql_is_the_same():
    local = '--auth-local=trust', '--auth-host=scram-sha-256'
    with postgresql_server.run(*local) as server:
        for line in lines('psql'):
            run(
                line,
                *(f'--host={server.folder}', f'--port={server.port}'),
                program='psql',
            )
        url = sa.make_url(url_of('connection').replace('<database>', 'x'))
        tables_can_be_made(
            url.set(
                drivername='postgresql+psycopg2',
                host='127.0.0.1',
                port=server.port,
                query={},
            )
        )


def tables_can_be_made(url):
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text('CREATE TABLE one (name VARCHAR(9))'))
        connection.execute(sa.text('DROP TABLE one'))


def test_the_broker_lets_the_user_in():
    """The server has other users: the name is one of its own."""
    broker.require()
    if not shutil.which('rabbitmqctl'):
        requirements.missing('rabbitmqctl is not installed')
    name = f'manila-{uuid.uuid4().hex[:8]}'
    host, port = broker.address()
    url = (
        url_of('transport_url')
        .replace('manila', name)
        .replace('<broker>:5672', f'{host}:{port}')
        .replace('rabbit:', 'amqp:')
    )
    try:
        for line in lines('rabbitmqctl'):
            run(re.sub(r'\bmanila\b', name, line))
        with kombu.Connection(url) as link:
            link.channel().queue_declare('one', exclusive=True)
    finally:
        for verb in ('delete_user', 'delete_vhost'):
            subprocess.run(
                ['rabbitmqctl', verb, name], check=False, capture_output=True
            )


@pytest.fixture
def keystone(tmp_path):
    with test_keystone.Keystone(tmp_path / 'keystone') as found:
        found.deploy(
            'OS_BOOTSTRAP_PASSWORD=first keystone_manage bootstrap '
            '--bootstrap-region-id RegionOne '
            f'--bootstrap-public-url {found.url} '
            f'--bootstrap-internal-url {found.url} 2> /dev/null'
        )
        yield found


def test_keystone_leads_clients_to_the_service(keystone, install):
    """With the section of the example, which has the same names."""
    section = re.search(r'(\[keystone_authtoken\]\n(?:.+\n)+)', EXAMPLE)[1]
    section = re.sub('memcached_servers.*', '', section)
    section = section.replace('https://<identity>:5000', keystone.url)
    installation = install(
        auth='keystone',
        options='default_share_type = default',
        sections=section.replace('<password>', 'secret'),
    )
    admin = keystone.client('admin', 'first', 'admin')
    ended = admin.run(*shlex.split('project create service'))
    assert ended.code == 0, ended
    for line in lines('openstack'):
        line = line.replace('api.example:8786', f'127.0.0.1:{installation.port}')
        ended = admin.run(*shlex.split(line)[1:])
        assert ended.code == 0, (line, ended)
    installation.start()
    admin('share type create', 'default', 'false')
    admin('share create', 'NFS', 1, '--name', 'first', '--wait')
    assert admin('share show', 'first')['status'] == 'available'
