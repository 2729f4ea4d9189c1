"""What the scripts of deploy do for an NFS gateway of shares on CephFS."""

import contextlib
import json
import pathlib
import re

import pytest

from manila_lite.share.drivers.cephfs.gateway import GUARD
from tests.support import (
    ceph as ceph_support,
    clean_root,
    deploy_node,
    nfs_gateways,
    sampling,
)
from tests.support.deploy_scripts import option, shell

VARIABLES = """
NODE_IP=192.0.2.11
NODE_NAME=node
BACKENDS='disk ceph'
BACKEND_ceph='share_driver = cephfs
driver_handles_share_servers = false
cephfs_conf_path = {conf}
cephfs_filesystem_name = cephfs
cephfs_nfs_keyring_path = {keyring}
cephfs_nfs_auth_id = {user}
cephfs_nfs_gateways = 192.0.2.10, 192.0.2.11'
"""
PREPARE = """
set -euo pipefail
source "$DEPLOY/lib/all.sh"
read_variables
read_gateway
"""
USER = 'manila_lite_nfs'


class Machine:
    """The variables of a gateway; the files of Ceph are in a folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.conf, self.keyring = folder / 'ceph.conf', folder / 'keyring'
        self.conf.write_text('')
        self.user = USER

    @property
    def variables(self) -> str:
        return VARIABLES.format(conf=self.conf, keyring=self.keyring, user=self.user)

    def run(self, lines: str, more: str = '') -> str:
        return shell(lines, self.variables + more, self.folder, PREPARE)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_gateway_reads_the_section_of_its_back_end_and_no_password(machine, tmp_path):
    file = tmp_path / 'gateway.conf'
    file.write_text(machine.run('role_conf gateway'))
    assert option(file, 'cephfs_nfs_gateways', 'ceph') == '192.0.2.10, 192.0.2.11'
    assert re.findall(r'^\[.*', file.read_text(), re.MULTILINE) == ['[ceph]']


def test_unit_is_that_of_the_address_and_of_the_back_end(machine):
    units = '$DEPLOY/../etc/manila_lite/systemd'
    text = machine.run(f'gateway_unit "{units}/manila-lite-nfs-gateway@.service"')
    (command,) = re.findall('^ExecStart=(.*)', text, re.MULTILINE)
    assert command.split()[1:] == [
        *('--config-file', '/etc/manila_lite/gateway.conf'),
        *('--backend', 'ceph', '--address', '192.0.2.11'),
    ]
    assert '%i' not in text


@pytest.mark.parametrize(
    'more, reason',
    [
        ('GATEWAY_BACKEND=disk\n', 'must have share_driver = cephfs'),
        ('GATEWAY_ADDRESS=192.0.2.1\n', 'must name 192.0.2.1, not only 192.0.2.10'),
    ],
)
def test_machine_that_is_no_gateway_of_the_back_end_is_refused(machine, more, reason):
    with pytest.raises(AssertionError, match=re.escape(reason)):
        machine.run('true', more)


def test_key_that_is_missing_is_asked_for_with_its_command(machine):
    with pytest.raises(AssertionError) as refused:
        machine.run('put_gateway_key')
    (command,) = re.findall("ceph 'auth' .*", str(refused.value))
    assert f"'client.{USER}' 'mon' 'allow r' 'osd' 'allow r pool=" in command
    machine.keyring.write_text('[client]')
    assert machine.run('put_gateway_key') == ''
    assert machine.keyring.read_text() == '[client]'


@ceph_support.limited
@ceph_support.on_cluster
def test_user_of_gateways_is_made_with_what_a_gateway_needs(ceph, machine):
    machine.conf = ceph.conf
    machine.user = f'{USER}_{machine.folder.name}'.replace('-', '_')
    try:
        assert machine.run('put_gateway_key') == f'wrote {machine.keyring}\n'
        assert machine.keyring.stat().st_mode & 0o777 == 0o600
        (found,) = ceph.admin.mon('auth get', entity=f'client.{machine.user}')
        assert found['caps'] == nfs_gateways.caps()
        client = ceph.client(machine.user, machine.keyring)
        assert client.read('nothing', ['probe']) == {}
        client.close()
    finally:
        with contextlib.suppress(json.JSONDecodeError):  # it says nothing
            ceph.admin.mon('auth rm', entity=f'client.{machine.user}')


INSTALL = r"""
step install
deploy/gateway
step again
deploy/gateway
step started
systemctl is-active manila-lite-nfs-gateway && echo active
grep ^ExecStart= /etc/systemd/system/manila-lite-nfs-gateway.service
stat --format '%U:%G %a' /etc/manila_lite/gateway.conf
ls /etc/manila_lite
step changed
sed -i 's/192.0.2.12/192.0.2.13/' deploy/local.conf
deploy/gateway
step rollback
deploy/rollback "$(basename "$(readlink /opt/manila_lite)")"
step remove
deploy/remove
step left
find /etc -name '*manila*' -not -path /etc/manila_lite
"""
LOCAL_CONF = """
NODE_NAME=node
NODE_IP=192.0.2.11
CONTROLLERS=192.0.2.1
BACKENDS=ceph
BACKEND_ceph='share_driver = cephfs
driver_handles_share_servers = false
cephfs_nfs_gateways = 192.0.2.11, 192.0.2.12'
"""


@pytest.mark.timeout(900)
@sampling.suite('nodes that deploy sets up', 0)
def test_gateway_is_set_up_and_removed_without_the_secrets(tmp_path):
    clean_root.require_namespaces()
    GUARD.build()
    node = deploy_node.Node(tmp_path / 'root')
    node.configure(LOCAL_CONF)
    ceph = node.root.folder / 'etc/ceph'
    ceph.mkdir()
    (ceph / 'ceph.conf').write_text('')
    (ceph / f'ceph.client.{USER}.keyring').write_text('')
    steps = node.run(INSTALL)
    assert 'started manila-lite-nfs-gateway' in steps['install']
    assert steps['again'] == ['Nothing to change.']
    active, command, mode, *files = steps['started']
    assert (active, mode) == ('active', 'root:root 600')
    assert command.endswith('--backend ceph --address 192.0.2.11')
    assert files == ['gateway.conf', 'roles', 'started']
    assert steps['changed'] == [
        'wrote /etc/manila_lite/gateway.conf',
        'restarted manila-lite-nfs-gateway',
        'Changes: 2.',
    ]
    assert steps['rollback'][-1] == 'Nothing to change.'
    assert 'removed /etc/manila_lite/gateway.conf' in steps['remove']
    assert steps['left'] == [f'/etc/ceph/ceph.client.{USER}.keyring']
