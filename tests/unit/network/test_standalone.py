"""The stand-alone network plug-in: what its options mean."""

import itertools

import pytest

from manila_lite import conf
from manila_lite import exception
from manila_lite.conf import network as options
from manila_lite.network import registry
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
    return list(itertools.islice(network.free(taken), count))


def test_all_of_the_network_but_its_own_addresses_can_be_given():
    free = list(plugin(mask='255.255.255.248').free([]))
    assert free == [f'10.0.0.{number}' for number in range(2, 7)]


def test_what_is_taken_is_not_free():
    assert first(plugin(), taken=['10.0.0.2', '10.0.0.4']) == [
        '10.0.0.3',
        '10.0.0.5',
        '10.0.0.6',
    ]


def test_ranges_limit_what_is_given_and_may_overlap():
    network = plugin(
        allowed_ip_ranges=[
            '10.0.0.20',
            '10.0.0.7-10.0.0.9',
            '10.0.0.8 - 10.0.0.10',
        ]
    )
    assert list(network.free([])) == [
        '10.0.0.7',
        '10.0.0.8',
        '10.0.0.9',
        '10.0.0.10',
        '10.0.0.20',
    ]


def test_the_gateway_is_never_given():
    network = plugin(
        gateway='10.0.0.8', allowed_ip_ranges=['10.0.0.7-10.0.0.9']
    )
    assert list(network.free([])) == ['10.0.0.7', '10.0.0.9']


def test_ipv6_addresses_are_given_of_a_gateway_that_is_one():
    network = plugin(
        gateway='fd00::1', mask='64', network_plugin_ipv6_enabled=True
    )
    assert first(network) == ['fd00::2', 'fd00::3', 'fd00::4']
    assert network.facts['ip_version'] == 6
    assert network.facts['cidr'] == 'fd00::/64'


def test_networks_of_other_segments_are_others():
    vlans = [
        plugin(network_type='vlan', segmentation_id=number)
        for number in (7, 8)
    ]
    assert len({each.segment for each in (*vlans, plugin())}) == 3
    assert plugin().segment == plugin(allowed_ip_ranges=['10.0.0.9']).segment


@pytest.mark.parametrize(
    'values, reason',
    [
        ({'gateway': None}, 'gateway is required'),
        ({'gateway': 'nowhere'}, 'is no address: nowhere'),
        ({'mask': None}, 'mask is required'),
        ({'mask': '33'}, 'is no mask: 33'),
        ({'mask': 'wide'}, 'is no mask: wide'),
        ({'gateway': 'fd00::1', 'mask': '64'}, 'ipv6_enabled is not set'),
        ({'network_plugin_ipv4_enabled': False}, 'neither'),
        (
            {
                'network_plugin_ipv4_enabled': False,
                'network_plugin_ipv6_enabled': True,
            },
            'ipv4_enabled is not set',
        ),
        ({'network_type': 'vlan'}, 'segmentation_id is required'),
        ({'allowed_ip_ranges': ['many']}, 'many is no range'),
        (
            {'allowed_ip_ranges': ['10.0.1.1']},
            '10.0.1.1 is not in 10.0.0.0/24',
        ),
        (
            {'allowed_ip_ranges': ['10.0.0.9-10.0.0.3']},
            'ends before it begins',
        ),
    ],
)
def test_unusable_options_are_told_by_name(values, reason):
    with pytest.raises(
        exception.NetworkBadConfigurationException, match=reason
    ) as caught:
        plugin(**values)
    assert '[section]' in str(caught.value)


# Where options stand


def configured(tmp_path, text):
    file = tmp_path / 'file.conf'
    file.write_text(text)
    return conf.new(files=[str(file)])


def test_a_section_says_what_default_does_not(tmp_path):
    found = registry.load(
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


def test_paths_of_older_files_name_the_plugin_too(tmp_path):
    found = registry.load(
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


def test_a_plugin_nobody_knows_is_told_with_those_there_are(tmp_path):
    with pytest.raises(
        exception.NetworkBadConfigurationException,
        match='"neutron".*known plug-ins are standalone',
    ):
        registry.load(
            None,
            configured(tmp_path, '[net]\nnetwork_api_class = neutron\n'),
            'net',
        )
