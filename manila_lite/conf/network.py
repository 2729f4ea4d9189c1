"""Options of network plug-ins.

Each option may be set in the section of a back end or in the section that
its network_config_group names; otherwise the value in DEFAULT applies.
"""

from typing import Any

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.StrOpt(
        'network_api_class',
        default='standalone',
        help='Entry point name of the network plug-in that allocates '
        'addresses for share servers. "standalone" uses a network '
        'that is described by these options, and needs no network '
        'service.',
    ),
    cfg.BoolOpt(
        'network_plugin_ipv4_enabled',
        default=True,
        help='Whether the plug-in may allocate IPv4 addresses. Turn it off '
        'for networks with IPv6 only.',
    ),
    cfg.BoolOpt(
        'network_plugin_ipv6_enabled',
        default=False,
        help='Whether the plug-in may allocate IPv6 addresses. Turn it on '
        'when the gateway has an IPv6 address.',
    ),
    cfg.StrOpt(
        'standalone_network_plugin_gateway',
        help='Address of the gateway; its version is the IP version of the '
        'network. Required by the plug-in.',
    ),
    cfg.StrOpt(
        'standalone_network_plugin_mask',
        help='Network mask, as 255.255.255.0 or as a number of bits. '
        'Required by the plug-in.',
    ),
    cfg.StrOpt(
        'standalone_network_plugin_network_type',
        choices=['flat', 'vlan', 'vxlan', 'gre'],
        help='Type of the network, for drivers that create network interfaces in it.',
    ),
    cfg.IntOpt(
        'standalone_network_plugin_segmentation_id',
        help='VLAN id or another segmentation id of the network. Required '
        'unless the network is flat.',
    ),
    cfg.ListOpt(
        'standalone_network_plugin_allowed_ip_ranges',
        help='Addresses that may be allocated, as single addresses or as '
        'ranges first-last; all of the network when unset. Set it '
        'when other systems use addresses of the network.',
    ),
    cfg.IntOpt(
        'standalone_network_plugin_mtu',
        default=1500,
        help='MTU of the network in bytes. Lower it for tunnelled networks.',
    ),
]


def register_network(conf: cfg.ConfigOpts, group: str) -> None:
    """Register the options in a section, too."""
    conf.register_opts(OPTS, group)


def values(conf: cfg.ConfigOpts, group: str) -> dict[str, Any]:
    """Return the values of a section, which fall back to DEFAULT."""
    register_network(conf, group)
    return {
        opt.name: conf[group][opt.name]
        if _is_set(conf, opt.name, group)
        else conf[opt.name]
        for opt in OPTS
    }


def _is_set(conf: cfg.ConfigOpts, name: str, group: str) -> bool:
    location = conf.get_location(name, group)
    return location is not None and location.location not in (
        cfg.Locations.opt_default,
        cfg.Locations.set_default,
    )
