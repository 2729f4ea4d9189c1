"""A first controller whose address comes late when it boots."""

import configparser
import os
import pathlib
import shlex
import shutil
import subprocess

import pytest

from tests.support import clean_root, deploy_scripts, requirements
from tests.support.deploy_scripts import tool

ADDRESS = '192.0.2.11'
VARIABLES = f'NODE_IP={ADDRESS}\nCONTROLLERS={ADDRESS}\nINTERNAL_TLS=no\n'
DEBIAN_UNITS = pathlib.Path('/usr/lib/systemd/system')
# What starts each server again, or before its address is there.
DROP_INS = {
    'haproxy': 'try_until_started',
    'redis-server': 'try_until_started',
    'postgresql@': 'wait_for_address',
}


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs lines with the functions of deploy.

    Units are in a directory of the test, and systemctl only says what it is
    asked for.
    """
    (tmp_path / 'units').mkdir()

    def run(lines, variables=VARIABLES):
        prepare = f"""
{deploy_scripts.PREPARE}
UNITS={tmp_path}/units
systemctl() {{
    echo "systemctl $*"
}}
"""
        return deploy_scripts.shell(lines, variables, tmp_path, prepare)

    return run


def isolated(script, *arguments):
    """Run lines where no address but loopback exists; return the output."""
    clean_root.require_namespaces()
    ended = subprocess.run(
        [
            *('unshare', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'),
            *('bash', '-euc', f'ip link set lo up\n{script}', '-'),
            *map(str, arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def read(text):
    parser = configparser.RawConfigParser()
    parser.optionxform = str
    parser.read_string(text)
    return parser


HAPROXY = f"""
"$1" -db -f "$2" &
until grep -q ' 0A ' /proc/net/tcp; do
    kill -0 $!
    sleep 0.1
done
echo listens
ip address add {ADDRESS}/32 dev lo
curl --silent --output /dev/null --write-out '%{{http_code}}\\n' \
    http://{ADDRESS}:8786/
"""


def test_haproxy_listens_before_its_address_is_there(shell, tmp_path):
    haproxy = tool('haproxy')
    tool('curl')
    file = tmp_path / 'haproxy.cfg'
    file.write_text(shell(f'proxy_conf {ADDRESS}'))
    lines = isolated(HAPROXY, haproxy, file).splitlines()
    # No API is up.
    assert [line for line in lines if line in ('listens', '503')] == ['listens', '503']


def test_keystone_is_reached_by_an_address_that_comes_late(shell):
    conf = shell(f'AUTH=keystone; use_identity; proxy_conf {ADDRESS}')
    assert f'bind {ADDRESS}:5000 transparent\n' in conf


WAIT = f"""
"$@" &
sleep 2
kill -0 $!
echo waits
ip address add {ADDRESS}/32 dev lo
wait $!
echo goes on
"""


def test_postgresql_waits_for_its_address(shell):
    command = read(shell('wait_for_address'))['Service']['ExecStartPre']
    found = isolated(WAIT, *shlex.split(command))
    assert found.splitlines() == ['waits', 'goes on']


def test_servers_that_end_are_started_until_the_address_is_there(shell):
    unit = read(shell('try_until_started'))
    assert unit['Service']['Restart'] == 'always'
    assert unit['Unit']['StartLimitIntervalSec'] == '0'


@pytest.mark.parametrize('name', DROP_INS)
def test_drop_in_fits_the_unit_of_debian(shell, tmp_path, name):
    unit = DEBIAN_UNITS / f'{name}.service'
    if not unit.exists() or shutil.which('systemd-analyze') is None:
        requirements.missing(f'{unit} or systemd-analyze is not installed')
    text = shell(DROP_INS[name])
    for key in ('Wants', 'After'):
        assert read(text)['Unit'][key] == 'network-online.target'
    copy = tmp_path / 'units' / unit.name.replace('@', '@15-main')
    shutil.copy(unit, copy)
    (tmp_path / 'units' / f'{copy.name}.d').mkdir()
    (tmp_path / 'units' / f'{copy.name}.d/manila-lite.conf').write_text(text)
    verified = subprocess.run(
        ['systemd-analyze', 'verify', '--man=no', copy],
        capture_output=True,
        text=True,
        env={**os.environ, 'SYSTEMD_UNIT_PATH': f'{copy.parent}:'},
    )
    assert 'manila-lite.conf' not in verified.stderr


def test_boot_order_is_written_once_and_removed(shell, tmp_path):
    lines = 'order_boot redis-server try_until_started'
    if os.geteuid():
        requirements.missing('only root can write files of root')
    own = tmp_path / 'units/redis-server.service.d/own.conf'
    assert shell(lines).splitlines() == [
        f'made directory {own.parent}',
        f'wrote {own.parent}/manila-lite.conf',
        'systemctl daemon-reload',
    ]
    assert shell(lines) == ''
    own.touch()
    # Its address is there before any server.
    assert shell(lines, 'NODE_IP=127.0.0.1\n').splitlines() == [
        f'removed {own.parent}/manila-lite.conf',
        'systemctl daemon-reload',
    ]
    assert list(own.parent.iterdir()) == [own]
    shell(lines)
    own.unlink()
    shell('delete_boot_order redis-server')
    assert not own.parent.exists()


SET_UP = """
CONTROLLER_DATABASE_PASSWORD=d NODE_DATABASE_PASSWORD=e
for name in install_packages put_file for_unit run_server check_proxy_conf \
        run_proxy make_postgresql_account make_postgresql_login; do
    eval "$name() { :; }"
done
put_boot_order() {
    echo "$1 $2"
}
"""


@pytest.mark.parametrize(
    'function, name',
    [
        ('set_up_postgresql', 'postgresql@'),
        ('set_up_redis', 'redis-server'),
        ('set_up_proxy', 'haproxy'),
    ],
)
def test_server_at_the_address_of_the_node_gets_its_drop_in(shell, function, name):
    clusters = list(pathlib.Path('/etc/postgresql').glob('*/main'))
    if name == 'postgresql@' and len(clusters) != 1:
        requirements.missing('no cluster of PostgreSQL is configured')
    assert shell(SET_UP + function) == f'{name} {DROP_INS[name]}\n'
