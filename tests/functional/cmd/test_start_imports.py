"""Libraries that a started service must not have loaded.

Each costs memory and time at every start, and only some requests,
installations or errors need it.
"""

import subprocess
import sys

import pytest

from tests.support import processes

HEAVY = {
    'alembic',
    'mako',  # to migrate an older schema
    'jsonschema',  # for messages about invalid bodies
    'keystonemiddleware',
    'keystoneauth1',
    'keystoneclient',
    'requests',
    'bcrypt',
    'jwt',  # the other auth strategies
    'oslo_middleware',  # CORS and proxies, where configured
    'kombu',
    'amqp',  # a broker
    'pymysql',
    'psycopg2',  # the other databases
    'redis',
    'etcd3gw',  # the other lock services
    'eventlet',
    'greenlet',  # the other concurrency
    'prometheus_client',
    'jinja2',
    'markupsafe',
    'cliff',
    'prettytable',  # of commands, or replaced by something smaller
    'openstack',
    'webtest',
    'pytest',
}
DRIVERS = {'tooz.drivers.file'}  # of the lock services, the one in use

CHILD = """
import atexit, pathlib, sys
from manila_lite.cmd import serve
atexit.register(lambda: pathlib.Path({path!r}).write_text('\\n'.join(
    name for name, module in sys.modules.items() if module is not None)))
sys.argv = ['manila-lite', 'serve', '--port', '{port}',
            '--state-dir', {state!r}]
serve.main()
"""


@pytest.fixture(scope='module')
def loaded(tmp_path_factory):
    """The names of all modules loaded when `serve` responds."""
    folder = tmp_path_factory.mktemp('start')
    names = folder / 'modules'
    code = CHILD.format(
        path=str(names), port=processes.free_port(), state=str(folder / 'state')
    )
    with subprocess.Popen(
        [sys.executable, '-c', code],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            assert 'answers at' in child.stdout.readline()
            child.terminate()
            assert child.wait(30) == 0
        finally:
            child.kill()
    return set(names.read_text().splitlines())


def test_heavy_libraries_are_loaded_on_demand(loaded):
    assert 'sqlalchemy' in loaded  # so it has started and reported all
    found = {name.partition('.')[0] for name in loaded}
    assert found & HEAVY == set()


def test_api_description_is_made_on_demand(loaded):
    assert 'manila_lite.api.v2.versions' in loaded
    assert not any(name.startswith('manila_lite.api.description') for name in loaded)


def test_dialect_of_postgresql_is_loaded_where_it_is_used(loaded):
    assert 'sqlalchemy.dialects.sqlite' in loaded
    assert 'sqlalchemy.dialects.postgresql' not in loaded


def test_one_lock_service_is_loaded(loaded):
    assert {name for name in loaded if name.startswith('tooz.drivers.')} == DRIVERS
