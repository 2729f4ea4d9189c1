"""The page "Installing", followed word for word in a clean root."""

import pathlib
import re
import subprocess
import sys

import pytest
import sqlalchemy as sa

from manila_lite import conf
from manila_lite.work import runner
from tests.functional.stories import suites
from tests.support import clean_root, databases

pytestmark = suites.operation

PAGE = clean_root.ROOT / 'doc/source/install.rst'
UNITS = clean_root.ROOT / 'etc/manila_lite/systemd'
CONFIGURATION = clean_root.ROOT / 'deploy/lib/configuration.sh'

EDITOR = """#!/bin/sh
sed -i -f /opt/test/edits "$1"
"""
OPENSTACK = """#!/opt/manila_lite/bin/python
import sys
from openstackclient import shell
sys.exit(shell.main())
"""
# The virtual environment finds what pip would have to download.
SITE = f'python{sys.version_info.major}.{sys.version_info.minor}/site-packages'
OFFLINE = f'echo /packages > /opt/manila_lite/lib/{SITE}/packages.pth'


def commands():
    """Return the commands of the part about servers, without prompts."""
    text = PAGE.read_text().partition('On a server\n')[2]
    return re.findall(r'^   [#$] (.+)$', text, re.MULTILINE)


@pytest.fixture
def root(tmp_path):
    clean_root.require_namespaces()
    found = clean_root.CleanRoot(tmp_path / 'root')
    found.add_program('editor', EDITOR)
    found.add_program('openstack', OPENSTACK)
    return found


@pytest.fixture
def database(root, tmp_path):
    """A database that the root reaches by a socket, in its configuration."""
    with databases.temporary_database('mysql', tmp_path) as url:
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        with engine.connect() as connection:
            socket = connection.exec_driver_sql('SELECT @@socket').scalar()
        root.bind(str(pathlib.Path(socket).parent))
        parsed = sa.make_url(url)
        server = f'{parsed.username}:{parsed.password or ""}@localhost'
        edits = {
            'manila:<password>@<database>/manila?': (
                f'{server}/{parsed.database}?unix_socket={socket}\\&'
            ),
            '<storage-node-1>': 'node',
            '<password>': 'secret',
            '<[a-z0-9.]*>': '127.0.0.1',
        }
        (root.folder / 'opt/test/edits').write_text(
            ''.join(f's|{old}|{new}|g\n' for old, new in edits.items())
        )
        yield url


@pytest.mark.usefixtures('database')
def test_the_page_leads_to_running_services(root):
    lines = commands()
    first = next(number for number, line in enumerate(lines) if 'pip install' in line)
    before = lines[: first + 1]
    before.insert(first, OFFLINE)
    ended = root.run(before, lines[first + 1 :], stdin='secret\n')
    assert ended.returncode == 0, ended.stdout
    answers = dict(
        re.findall(r'^\+ (.+)\n((?:(?!\+ ).*\n)*)', ended.stdout, re.MULTILINE)
    )
    for command, answer in answers.items():
        if 'curl' in command:
            # A line may follow that the bus is being checked.
            assert 'OK' in answer.splitlines(), ended.stdout
    (shares,) = (answer for line, answer in answers.items() if 'share list' in line)
    assert re.search(r'first .* (creating|available) ', shares), ended.stdout
    listed = next(answer for line, answer in answers.items() if 'service list' in line)
    found = re.findall(r'^(\S+) +(\S+) +nova +enabled +up', listed, re.M)
    assert sorted(found) == [
        ('manila-data', 'node'),
        ('manila-scheduler', 'node'),
        ('manila-share', 'node@fast'),
        ('manila-share', 'node@large'),
    ]


@pytest.mark.parametrize(
    'unit',
    sorted(
        path
        for path in UNITS.glob('*.service')
        # Its server is no part of this, or it is killed.
        if path.stem != 'manila-lite-keystone'
        and 'KillSignal=SIGKILL' not in path.read_text()
    ),
    ids=lambda path: path.stem,
)
def test_systemd_waits_for_longer_than_a_service(unit):
    """With the time for which the API of a node goes on, in deploy."""
    (limit,) = re.findall(r'TimeoutStopSec=(\d+)', unit.read_text())
    (drain_time,) = re.findall(r'api_drain_time = (\d+)', CONFIGURATION.read_text())
    graceful = conf.new().graceful_shutdown_timeout
    assert int(limit) > int(drain_time) + graceful + runner.HAND_ON_TIME


@pytest.mark.parametrize(
    'unit', sorted(UNITS.glob('*.service')), ids=lambda path: path.stem
)
def test_systemd_understands_the_unit(unit, tmp_path):
    """Its program need not be installed."""
    if not pathlib.Path('/usr/bin/systemd-analyze').exists():
        pytest.skip('systemd is not installed')
    copied = tmp_path / unit.name
    copied.write_text(re.sub(r'/opt/\w+/bin/', '/usr/bin/env ', unit.read_text()))
    ended = subprocess.run(
        ['systemd-analyze', 'verify', '--man=no', copied],
        capture_output=True,
        text=True,
        check=False,
    )
    assert unit.name not in ended.stderr
