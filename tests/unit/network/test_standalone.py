"""The options of the standalone network plug-in."""

import itertools

import pytest

from manila_lite import conf, exception
from manila_lite.conf import network as options
from manila_lite.network import base
from manila_lite.network.standalone import StandaloneNetwork


def plugin(**values):
    given = {opt.name: opt.default for opt in options.OPTS} | {
        'standalone_network_plugin_gateway': '10.0.0.1',
        'standalone_network_plugin_mask': '24',
    }
    given |= {
        f'standalone_network_plugin_{name}'
        if not name.startswith('network_plugin_')
        else name: value
        for name, value in values.items()
    }
    return StandaloneNetwork(None, given, group='section')


def first(network, count=3, taken=()):
    return list(itertools.islice(network.free_addresses(taken), count))


def test_network_broadcast_and_gateway_are_not_free():
    network = plugin(mask='255.255.255.248')
    assert list(network.free_addresses([])) == [
        f'10.0.0.{number}' for number in range(2, 7)
    ]


def test_allocated_addresses_are_not_free():
    assert first(plugin(), taken=['10.0.0.2', '10.0.0.4']) == [
        '10.0.0.3',
        '10.0.0.5',
        '10.0.0.6',
    ]


def test_ranges_limit_the_addresses_and_may_overlap():
    network = plugin(
        allowed_ip_ranges=['10.0.0.20', '10.0.0.7-10.0.0.9', '10.0.0.8 - 10.0.0.10']
    )
    assert list(network.free_addresses([])) == [
        '10.0.0.7',
        '10.0.0.8',
        '10.0.0.9',
        '10.0.0.10',
        '10.0.0.20',
    ]


def test_the_gateway_is_never_free():
    network = plugin(gateway='10.0.0.8', allowed_ip_ranges=['10.0.0.7-10.0.0.9'])
    assert list(network.free_addresses([])) == ['10.0.0.7', '10.0.0.9']


def test_an_ipv6_gateway_makes_an_ipv6_network():
    network = plugin(gateway='fd00::1', mask='64', network_plugin_ipv6_enabled=True)
    assert first(network) == ['fd00::2', 'fd00::3', 'fd00::4']
    assert network.attributes['ip_version'] == 6
    assert network.attributes['cidr'] == 'fd00::/64'


def test_segments_differ_by_segmentation_id():
    vlans = [plugin(network_type='vlan', segmentation_id=number) for number in (7, 8)]
    assert len({each.segment for each in (*vlans, plugin())}) == 3
    assert plugin().segment == plugin(allowed_ip_ranges=['10.0.0.9']).segment


@pytest.mark.parametrize(
    'values, reason',
    [
        ({'gateway': None}, 'gateway is required'),
        ({'gateway': 'nowhere'}, 'is not an address: nowhere'),
        ({'mask': None}, 'mask is required'),
        ({'mask': '33'}, 'is not a mask: 33'),
        ({'mask': 'wide'}, 'is not a mask: wide'),
        ({'gateway': 'fd00::1', 'mask': '64'}, 'ipv6_enabled is not set'),
        ({'network_plugin_ipv4_enabled': False}, 'neither'),
        (
            {'network_plugin_ipv4_enabled': False, 'network_plugin_ipv6_enabled': True},
            'ipv4_enabled is not set',
        ),
        ({'network_type': 'vlan'}, 'segmentation_id is required'),
        ({'allowed_ip_ranges': ['many']}, 'many is not a range'),
        ({'allowed_ip_ranges': ['10.0.1.1']}, '10.0.1.1 is not in 10.0.0.0/24'),
        ({'allowed_ip_ranges': ['10.0.0.9-10.0.0.3']}, 'ends before it begins'),
    ],
)
def test_invalid_options_are_reported_by_name(values, reason):
    with pytest.raises(
        exception.NetworkBadConfigurationException, match=reason
    ) as caught:
        plugin(**values)
    assert '[section]' in str(caught.value)


# Sections


def configured(tmp_path, text):
    file = tmp_path / 'file.conf'
    file.write_text(text)
    return conf.new(files=[str(file)])


def test_a_section_overrides_default(tmp_path):
    found = base.load_plugin(
        None,
        configured(
            tmp_path,
            """
[DEFAULT]
standalone_network_plugin_gateway = 10.1.0.1
standalone_network_plugin_mask = 16
[net]
standalone_network_plugin_mask = 24
""",
        ),
        'net',
    )
    assert str(found.network) == '10.1.0.0/24'
    assert found.group == 'net'


def test_class_paths_of_manila_are_accepted(tmp_path):
    found = base.load_plugin(
        None,
        configured(
            tmp_path,
            """
[net]
network_api_class = \
manila.network.standalone_network_plugin.StandaloneNetworkPlugin
standalone_network_plugin_gateway = 10.1.0.1
standalone_network_plugin_mask = 16
""",
        ),
        'net',
    )
    assert isinstance(found, StandaloneNetwork)


def test_an_unknown_plugin_is_reported_with_the_known_ones(tmp_path):
    with pytest.raises(
        exception.NetworkBadConfigurationException,
        match='"neutron".*known are standalone',
    ):
        base.load_plugin(
            None, configured(tmp_path, '[net]\nnetwork_api_class = neutron\n'), 'net'
        )
