"""What the unit files allow the services, and how they replace each other."""

import configparser
import pathlib
import shutil
import subprocess

import pytest

from tests.support.deploy_scripts import ROOT

UNITS = ROOT / 'etc/manila_lite/systemd'
NAMES = sorted(path.stem for path in UNITS.glob('*.service'))

ALL = {
    'NoNewPrivileges': 'true',
    'PrivateTmp': 'true',
    'ProtectControlGroups': 'true',
    'ProtectKernelLogs': 'true',
    'ProtectKernelModules': 'true',
    'ProtectKernelTunables': 'true',
    'LockPersonality': 'true',
    'RestrictRealtime': 'true',
    'SystemCallArchitectures': 'native',
}
MOST = ALL | {
    'PrivateDevices': 'true',
    'ProtectClock': 'true',
    'ProtectHome': 'true',
    'ProtectHostname': 'true',
    'RestrictAddressFamilies': 'AF_UNIX AF_INET AF_INET6',
    'RestrictNamespaces': 'true',
    'SystemCallFilter': '@system-service',
}
WITHOUT_FILES_OF_OTHERS = MOST | {
    'ProtectSystem': 'strict',
    'CapabilityBoundingSet': '',
    'RestrictSUIDSGID': 'true',
}
FILES = {
    'ProtectSystem': 'full',
    'CapabilityBoundingSet': 'CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER',
    'AmbientCapabilities': 'CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER',
}
HARDENING = {
    'manila-lite-api': WITHOUT_FILES_OF_OTHERS,
    'manila-lite-controller': WITHOUT_FILES_OF_OTHERS,
    'manila-lite-scheduler': WITHOUT_FILES_OF_OTHERS,
    'manila-lite-keystone': WITHOUT_FILES_OF_OTHERS,
    'manila-lite-data': MOST | FILES,
    'manila-lite-services': MOST | FILES,
    'manila-lite': MOST | FILES,
    # With the driver btrfs its drop-in takes back what is here.
    'manila-lite-share': MOST | FILES,
    'manila-lite-nfs-gateway@': ALL | {'ProtectSystem': 'full'},
}
AS_ROOT = {'manila-lite-nfs-gateway@'}
"""Their NFS server acts as the users of clients."""


def read(path):
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read_string(pathlib.Path(path).read_text())
    return parser


@pytest.mark.parametrize('name', NAMES)
def test_unit_allows_no_more_than_its_service_needs(name):
    service = read(UNITS / f'{name}.service')['Service']
    expected = HARDENING[name]
    assert {key: service.get(key) for key in expected} == expected
    assert ('AmbientCapabilities' in service) == ('AmbientCapabilities' in expected)
    assert (service['User'] == 'root') == (name in AS_ROOT)


WITH_RUNNERS = {
    'manila-lite',
    'manila-lite-controller',
    'manila-lite-data',
    'manila-lite-scheduler',
    'manila-lite-services',
    'manila-lite-share',
}
"""Those that report to systemd while they, or their processes, look for work."""


@pytest.mark.parametrize('name', NAMES)
def test_units_expect_reports_of_what_gives_them(name):
    service = read(UNITS / f'{name}.service')['Service']
    assert ('WatchdogSec' in service) == (name in WITH_RUNNERS)


@pytest.mark.parametrize('name', NAMES)
def test_state_and_logs_are_not_for_every_user(name):
    """systemd sets the modes of these directories at each start."""
    service = read(UNITS / f'{name}.service')['Service']
    for directory in ('State', 'Logs'):
        if f'{directory}Directory' in service:
            assert service[f'{directory}DirectoryMode'] == '0750'


@pytest.mark.parametrize(
    'name', ['manila-lite', 'manila-lite-services', 'manila-lite-share']
)
def test_servers_of_btrfs_may_open_as_many_files_as_units_of_debian(name):
    """The supervisor raises its limit to the hard one, as for Ganesha."""
    service = read(UNITS / f'{name}.service')['Service']
    assert service['LimitNOFILE'] == '65536:524288'


def test_servers_of_btrfs_see_all_mounts():
    """Its drop-in ends what gives a service a view of its own of them."""
    share = read(UNITS / 'manila-lite-share.service')['Service']
    drop_in = read(UNITS / 'manila-lite-share.service.d/btrfs.conf')['Service']
    views = {
        key
        for key in share
        if key.startswith(('Private', 'Protect'))
        or key in ('ReadWritePaths', 'RestrictNamespaces')
    }
    assert {key for key in views if drop_in.get(key) != 'false'} == set()


def test_controller_takes_the_names_of_api_and_scheduler(tmp_path):
    if not shutil.which('systemctl'):
        pytest.skip('systemd is not installed')
    units = tmp_path / 'etc/systemd/system'
    units.mkdir(parents=True)
    shutil.copy(UNITS / 'manila-lite-controller.service', units)

    def systemctl(verb):
        subprocess.run(
            [
                *('systemctl', f'--root={tmp_path}', '--quiet', verb),
                'manila-lite-controller',
            ],
            check=True,
        )

    names = ('manila-lite-api.service', 'manila-lite-scheduler.service')
    systemctl('enable')
    for name in names:
        assert (units / name).readlink().name == ('manila-lite-controller.service')
    systemctl('disable')
    assert not any((units / name).is_symlink() for name in names)
