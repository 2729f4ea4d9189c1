"""The DevStack plug-in, with the functions of DevStack recorded."""

import getpass
import os
import pathlib
import subprocess

import pytest

from manila_lite import conf as options
from manila_lite.api import versions
from tests.support.processes import BINARIES

ROOT = pathlib.Path(__file__).resolve().parents[3]
# What the plug-in uses of DevStack, beside the functions that only record.
DEVSTACK = """
set -o errexit
for name in configure_keystone_authtoken_middleware create_service_user \
        define_plugin enable_service get_or_create_endpoint \
        get_or_create_service iniset install_package openstack \
        pip_install recreate_database run_process stop_process sudo \
        wait_for_service; do
    eval "$name() { record $name \\"\\$@\\"; }"
done
record() {
    printf '%s\\n' "$*" >> "$FOLDER/calls"
    # No share type exists before one is created.
    [[ $* != 'openstack share type show'* ]]
}
is_service_enabled() {
    [[ " $ENABLED " == *" $1 "* ]]
}
database_connection_url() {
    echo "sqlite:///$FOLDER/$1.sqlite"
}
get_transport_url() {
    echo rabbit://stack:secret@192.0.2.1:5672/
}
mysql() {
    echo "mysql  $DATABASE_SERVER"
}
die() {
    echo "${*:2}"
    exit 1
}
source "$PLUGIN/settings"
source "$PLUGIN/plugin.sh" "$@"
"""


class DevStack:
    """Runs phases of the plug-in.

    `calls` are those of functions of DevStack in the last one.
    """

    def __init__(self, folder):
        self.folder = folder
        self.conf = folder / 'etc' / 'manila_lite.conf'
        self.conf.parent.mkdir()
        self.calls = []
        self.env = {
            'PATH': '/usr/sbin:/usr/bin:/sbin:/bin',
            'FOLDER': str(folder),
            'PLUGIN': str(ROOT / 'devstack'),
            'DEST': str(ROOT.parent),
            'DATA_DIR': str(folder / 'data'),
            'HOST_IP': '192.0.2.1',
            'SERVICE_HOST': '192.0.2.1',
            'REGION_NAME': 'RegionOne',
            'STACK_USER': getpass.getuser(),
            'SERVICE_TIMEOUT': '60',
            'ENABLE_DEBUG_LOG_LEVEL': 'True',
            'TEMPEST_CONFIG': 'tempest.conf',
            'ENABLED': 'tempest mysql',
            'DATABASE_SERVER': 'Ver 15.1 Distrib 10.11-MariaDB',
            'MANILA_LITE_DIR': str(ROOT),
            'MANILA_LITE_CONF_DIR': str(self.conf.parent),
            'MANILA_LITE_BACKENDS': 'disk record',
            'MANILA_LITE_BACKEND_record': (
                'share_driver = dummy\ndriver_handles_share_servers = false'
            ),
        }

    def run(self, *phase, code=0, **env):
        calls = self.folder / 'calls'
        calls.unlink(missing_ok=True)
        ended = subprocess.run(
            ['bash', '-c', DEVSTACK, 'stack.sh', *phase],
            capture_output=True,
            text=True,
            env=self.env | env,
        )
        assert ended.returncode == code, ended.stdout + ended.stderr
        self.calls = calls.read_text().splitlines()[3:]
        return ended.stdout

    def provide_program(self):
        """Provide the environment that the phase install would make."""
        state = self.folder / 'data' / 'manila_lite'
        program = subprocess.check_output(
            [
                *('bash', '-c'),
                'source "$DEPLOY/lib/all.sh"; use_program redis,memcached\n'
                'echo "${PROGRAM##*/}"',
            ],
            env=self.env | {'DEPLOY': str(ROOT / 'deploy')},
            text=True,
        )
        venv = state / 'venv-releases' / program.strip()
        venv.mkdir(parents=True)
        (venv / 'bin').symlink_to(BINARIES)
        (venv / '.complete').touch()
        return state / 'venv', venv


@pytest.fixture
def devstack(tmp_path):
    found = DevStack(tmp_path)
    link, program = found.provide_program()
    link.symlink_to(program)
    return found


def test_phases_set_up_a_service_in_the_cloud(devstack):
    devstack.run('stack', 'pre-install')
    assert devstack.calls == ['install_package python3-venv logrotate curl']
    devstack.run('stack', 'install')
    assert devstack.calls == ['pip_install python-manilaclient']

    devstack.run('stack', 'post-config')
    conf = options.new(files=[str(devstack.conf)])
    assert conf.auth_strategy == 'keystone'
    text = devstack.conf.read_text()
    assert '\ntransport_url = rabbit://stack:secret@192.0.2.1' in text
    assert options.backends(conf) == ['disk', 'record']
    assert os.path.isdir(conf.disk.local_root)
    assert conf.record.share_driver == 'dummy'
    assert devstack.conf.stat().st_mode & 0o077 == 0
    migrated = subprocess.run(
        [
            *(BINARIES / 'manila-lite-manage', 'db', 'check'),
            *('--config-file', devstack.conf),
        ]
    )
    assert migrated.returncode == 0
    url = 'http://192.0.2.1:8786/v2'
    assert [
        call for call in devstack.calls if not call.startswith(('sudo', 'ini'))
    ] == [
        f'configure_keystone_authtoken_middleware {devstack.conf} manila_lite',
        'recreate_database manila_lite',
        'create_service_user manila_lite',
        'get_or_create_service manila_lite shared-file-system Shared file systems',
        f'get_or_create_endpoint shared-file-system RegionOne {url}',
        'get_or_create_service manila_lite_v2 sharev2 Shared file systems',
        f'get_or_create_endpoint sharev2 RegionOne {url}',
    ]

    devstack.run('stack', 'extra')
    assert [call.split()[:2] for call in devstack.calls] == [
        ['run_process', 'manila-lite-api'],
        ['run_process', 'manila-lite-scheduler'],
        ['run_process', 'manila-lite-share'],
        ['run_process', 'manila-lite-data'],
        ['wait_for_service', '60'],
        ['openstack', 'share'],
        ['openstack', 'share'],
    ]
    assert devstack.calls[-1].startswith('openstack share type create default')

    devstack.run('stack', 'test-config')
    latest = versions.text(versions.MAX)
    assert f'iniset tempest.conf share max_api_microversion {latest}' in devstack.calls


def test_commands_that_devstack_runs_exist(devstack):
    devstack.run('stack', 'extra')
    for call in devstack.calls[:4]:
        program = call.split()[2]
        assert os.access(program, os.X_OK), program


def test_tempest_is_configured_only_where_it_is_enabled(devstack):
    devstack.run('stack', 'test-config', ENABLED='')
    assert devstack.calls == []


def test_mysql_is_refused_with_what_to_do(devstack):
    printed = devstack.run('stack', 'install', code=1, DATABASE_SERVER='Ver 8.0.40')
    assert 'enable_service postgresql' in printed


def test_unstack_stops_the_services_and_clean_removes_its_files(devstack):
    devstack.run('unstack')
    assert devstack.calls == [
        f'stop_process manila-lite-{name}'
        for name in ('api', 'scheduler', 'share', 'data')
    ]
    devstack.run('clean')
    (removal,) = devstack.calls
    assert removal.startswith('sudo rm -rf ')
    assert str(devstack.conf.parent) in removal.split()
