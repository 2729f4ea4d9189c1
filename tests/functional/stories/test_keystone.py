"""A real Keystone, set up by deploy, and the official client."""

import getpass
import os
import pathlib
import shlex
import subprocess

import pytest
import requests

from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support.cli import Cli
from tests.support.processes import BINARIES, free_port, wait_until

pytestmark = suites.operation

ROOT = pathlib.Path(__file__).resolve().parents[3]
PREPARE = """
set -euo pipefail
source "$DEPLOY/lib/all.sh"
read_variables
DATABASE_PASSWORD=a BROKER_PASSWORD=b LOCKS_PASSWORD=c TOKEN_KEY=d
ADMIN_PASSWORD=first KEYSTONE_PASSWORD=second KEYSTONE_DATABASE_PASSWORD=e
"""
# The user of the tests owns all files, and need not be root.
OF_ONE_USER = """
put_file() {
    local text
    text=$(cat)
    if [[ ! -e $3 || $(< "$3") != "$text" ]]; then
        change "wrote $3" tee "$3" <<< "$text" > /dev/null
    fi
}
"""
# Tests run everything as one user.
RUNUSER = """#!/bin/bash
while [[ $1 != -- ]]; do
    shift
done
shift
exec "$@"
"""


class Keystone:
    """Keystone below a folder, at a port of loopback."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.url = f'http://127.0.0.1:{self.port}/v3'
        self._variables = f"""
AUTH=keystone
KEYSTONE_PORT={self.port}
KEYSTONE_LOCAL_PORT={self.port}
KEYSTONE_DATABASE_URL=sqlite:///{folder}/keystone.sqlite
"""
        programs = folder / 'bin'
        programs.mkdir(parents=True)
        (programs / 'runuser').write_text(RUNUSER)
        (programs / 'runuser').chmod(0o755)

    def deploy(self, lines):
        """Run lines with the functions of deploy; return what they print."""
        variables = self.folder / 'local.conf'
        variables.write_text(self._variables)
        venv = shlex.quote(str(BINARIES.parent))
        script = f"""{PREPARE}{'' if os.geteuid() == 0 else OF_ONE_USER}
KEYSTONE_ETC={self.folder} KEYSTONE_VENV={venv}
VENV={venv}
use_identity
{lines}"""
        ended = subprocess.run(
            ['bash', '-c', script],
            capture_output=True,
            text=True,
            env={
                'PATH': f'{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin',
                'DEPLOY': str(ROOT / 'deploy'),
                'LOCAL_CONF': str(variables),
            },
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def set_up(self):
        user = getpass.getuser()
        for name in ('keystone.conf', 'gunicorn.conf.py'):
            text = self.deploy(name.split('.')[0] + '_conf')
            (self.folder / name).write_text(text)
        for kind in ('fernet', 'credential'):
            (self.folder / f'{kind}-keys').mkdir(mode=0o700)
        self.deploy(f"""
keystone_manage db_sync
keystone_manage db_sync --check
for kind in fernet credential; do
    keystone_manage "${{kind}}_setup" \
        --keystone-user {user} --keystone-group "$(id -gn)"
done""")

    def __enter__(self):
        self.set_up()
        self._log = (self.folder / 'log').open('wb')
        self._process = subprocess.Popen(
            [BINARIES / 'gunicorn'],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={
                'PATH': '/usr/bin:/bin',
                'OS_KEYSTONE_CONFIG_FILES': str(self.folder / 'keystone.conf'),
            },
        )
        try:
            wait_until(self._answers, 'Keystone answers')
        except BaseException:
            self.__exit__()
            raise
        return self

    def _answers(self):
        assert self._process.poll() is None, (self.folder / 'log').read_text()
        try:
            return requests.get(self.url, timeout=30).ok
        except requests.ConnectionError:
            return False

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def client(self, user, password, project):
        return Cli(
            *('--os-auth-url', self.url),
            *('--os-username', user, '--os-password', password),
            *('--os-user-domain-name', 'Default'),
            *('--os-project-domain-name', 'Default'),
            *('--os-project-name', project),
            *('--os-region-name', 'RegionOne'),
            version='2.65',
        )


@pytest.fixture(scope='module')
def keystone(tmp_path_factory):
    with Keystone(tmp_path_factory.mktemp('keystone')) as found:
        yield found


@pytest.fixture(scope='module')
def installation(keystone, tmp_path_factory):
    """An installation that is entered into Keystone, and trusts it."""
    with new_installation(
        tmp_path_factory.mktemp('service') / 'installation',
        auth='keystone',
        options='default_share_type = default',
        sections=keystone.deploy('keystone_authtoken_conf; keystone_secret_conf'),
    ) as found:
        found.start()
        made = keystone.deploy(f'API_PORT={found.port}; register_service')
        assert 'made the user manila_lite in Keystone' in made
        cli = keystone.client('admin', 'first', 'admin')
        cli('share type create', 'default', 'false')
        yield found


def openstack(keystone, command):
    """Run a command of the identity service as its administrator."""
    ended = keystone.client('admin', 'first', 'admin').run(*command.split())
    assert ended.code == 0, ended
    return ended.out


def test_a_share_is_created_with_a_token_of_keystone(keystone, installation):
    admin = keystone.client('admin', 'first', 'admin')
    admin('share create', 'NFS', 1, '--name', 'first', '--wait')
    assert admin('share show', 'first')['status'] == 'available'
    # It looks the project up in Keystone.
    admin('share quota set', 'admin', '--shares', 7)
    assert admin('share quota show', 'admin')['shares'] == 7


def test_a_member_sees_the_shares_of_its_project_only(keystone, installation):
    keystone.client('admin', 'first', 'admin')(
        'share create', 'NFS', 1, '--name', 'of-admin', '--wait'
    )
    openstack(keystone, 'project create red')
    openstack(keystone, 'user create --project red --password word ann')
    openstack(keystone, 'role add --project red --user ann member')
    ann = keystone.client('ann', 'word', 'red')
    ann('share create', 'NFS', 1, '--name', 'of-ann', '--wait')
    assert [share['Name'] for share in ann('share list')] == ['of-ann']
    assert 'HTTP 403' in ann('share pool list', code=1)


def test_the_user_of_the_service_has_no_other_role(keystone, installation):
    found = openstack(
        keystone,
        'role assignment list --names --user manila_lite '
        '-f value -c Role -c Project -c System',
    )
    assert found.split() == ['service', 'service@Default']


def test_registering_again_changes_nothing(keystone, installation):
    lines = f'API_PORT={installation.port}; register_service; report_changes'
    assert keystone.deploy(lines) == 'Nothing to change.\n'


def test_registering_again_mends_what_has_changed(keystone, installation):
    openstack(keystone, 'user set --password other manila_lite')
    found = openstack(keystone, 'endpoint list --service sharev2 -f value -c ID')
    openstack(keystone, f'endpoint set --url http://wrong:1 {found.split()[0]}')
    made = keystone.deploy(f'API_PORT={installation.port}; register_service')
    assert 'set the password of the service in Keystone' in made
    assert ' endpoint of sharev2 in Keystone' in made
    assert len(made.splitlines()) == 2


def test_an_administrator_that_keystone_does_not_know_is_named(keystone):
    lines = f"""
(KEYSTONE_AUTH_URL={keystone.url}
ADMIN_PASSWORD=wrong
use_identity
register_service) 2>&1 || true"""
    assert 'does not accept admin' in keystone.deploy(lines)
