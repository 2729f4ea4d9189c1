"""The links of share servers: which there are, and how they are attached."""

import json
import pathlib
import subprocess

import pytest

from manila_lite import exception
from manila_lite.share.drivers.btrfs.servers import server_network
from manila_lite.share.drivers.btrfs.servers.server_network import Link, ServerNetwork
from tests.drivers.driver_harness import DriverHarness
from tests.support import storage, tenant_network

BRIDGE = 'br-shares'
LINK = Link('ml1', '02:00:00:00:00:01', BRIDGE, '10.20.0.5/24', None, 1450)


def links(template=BRIDGE, **values):
    """Return the links of a server whose network has these values."""
    info = DriverHarness('btrfs', lambda: None).network_info('10.20.0.5')
    info[0].update(values)
    for allocation in info[0]['network_allocations']:
        allocation.update(values)
    return server_network.links_for('server', info, template)


def vlan(segment):
    return {'network_type': 'vlan', 'segmentation_id': segment}


@pytest.mark.parametrize(
    'template, values, bridge, port',
    [
        (BRIDGE, {'network_type': 'flat'}, BRIDGE, None),
        (BRIDGE, {'network_type': None}, BRIDGE, None),
        (BRIDGE, vlan(101), BRIDGE, 101),
        ('br-{segmentation_id}', vlan(101), 'br-101', None),
        (
            'br-{segmentation_id}',
            {'network_type': 'vxlan', 'segmentation_id': 70000},
            'br-70000',
            None,
        ),
    ],
)
def test_link_is_on_the_bridge_and_in_the_vlan_of_its_network(
    template, values, bridge, port
):
    (link,) = links(template, **values)
    assert (link.bridge, link.vlan) == (bridge, port)


@pytest.mark.parametrize(
    'template, values, reason',
    [
        (BRIDGE, vlan(None), 'None is not the id of a VLAN'),
        (BRIDGE, vlan(0), '0 is not the id of a VLAN'),
        (BRIDGE, vlan(4095), '4095 is not the id of a VLAN'),
        (
            BRIDGE,
            {'network_type': 'vxlan', 'segmentation_id': 5},
            'type vxlan, for which btrfs_bridge has to contain',
        ),
        ('br-{segmentation_id}', {}, 'has no segmentation id'),
    ],
)
def test_network_that_no_bridge_carries_is_refused(template, values, reason):
    values = {'network_type': None, 'segmentation_id': None} | values
    with pytest.raises(exception.ShareBackendException, match=reason):
        links(template, **values)


def test_link_of_a_server_that_was_set_up_before_there_were_vlans_is_known():
    assert Link(*json.loads(json.dumps(LINK[:-1]))) == LINK


def test_link_in_a_vlan_is_started_when_its_port_is_in_no_other_vlan():
    assert server_network.port_commands(LINK._replace(vlan=101)) == [
        ('ip', ['link set ml1 down', f'link set ml1 master {BRIDGE}']),
        (
            'bridge',
            ['vlan del dev ml1 vid 1-4094', 'vlan add dev ml1 vid 101 pvid untagged'],
        ),
        ('ip', ['link set ml1 mtu 1450 up']),
    ]


@pytest.fixture
def bridge():
    storage.require_servers()
    with tenant_network.bridge() as name:
        yield name


def test_bridge_that_does_not_tell_vlans_apart_is_refused(bridge, tmp_path):
    network = ServerNetwork(tmp_path)
    link = LINK._replace(bridge=bridge, vlan=101)
    with pytest.raises(exception.StorageUnavailable, match='VLANs'):
        network.ensure([link])
    assert not network.is_complete([link])
    assert not network.namespace.exists()


def test_port_is_in_the_vlan_of_its_network_only(bridge, tmp_path):
    filters = pathlib.Path(f'/sys/class/net/{bridge}/bridge/vlan_filtering')
    if not filters.exists():
        pytest.skip('this kernel has no VLANs on bridges')
    filters.write_text('1')
    network = ServerNetwork(tmp_path)
    name = f'ml{tenant_network.new_name()[-10:]}'
    link = LINK._replace(name=name, bridge=bridge, vlan=101)
    try:
        assert network.ensure([link])
        assert network.is_complete([link])
        shown = subprocess.run(
            ['bridge', '-json', 'vlan', 'show', 'dev', name],
            capture_output=True,
            check=True,
        )
        (port,) = json.loads(shown.stdout)
        assert [one['vlan'] for one in port['vlans']] == [101]
        tenant_network.delete_link(name)
        assert network.ensure([link])
    finally:
        network.remove([link])
