"""Where share servers get their addresses from.

Each option may stand in a back end's own section, or in the one that it
names as its network_config_group; else the value of DEFAULT holds.
"""

from typing import Any

from oslo_config import cfg

GROUP = None
OPTS = [
    cfg.StrOpt(
        'network_api_class',
        default='standalone',
        help='Network plug-in that gives addresses to share servers: '
        'the name of an entry point. "standalone" hands out '
        'those of a network that is described here, and needs '
        'no network service.',
    ),
    cfg.BoolOpt(
        'network_plugin_ipv4_enabled',
        default=True,
        help='Whether the plug-in may hand out IPv4 addresses. Turn '
        'it off for networks of IPv6 alone.',
    ),
    cfg.BoolOpt(
        'network_plugin_ipv6_enabled',
        default=False,
        help='Whether the plug-in may hand out IPv6 addresses. Turn '
        'it on when the gateway has one.',
    ),
    cfg.StrOpt(
        'standalone_network_plugin_gateway',
        help='Address of the gateway, which also says whether '
        'addresses are IPv4 or IPv6. Required by the plug-in.',
    ),
    cfg.StrOpt(
        'standalone_network_plugin_mask',
        help='Network mask, as 255.255.255.0 or as the number of '
        'bits. Required by the plug-in.',
    ),
    cfg.StrOpt(
        'standalone_network_plugin_network_type',
        choices=['flat', 'vlan', 'vxlan', 'gre'],
        help='What kind of network it is, as drivers need to know '
        'who make interfaces in it.',
    ),
    cfg.IntOpt(
        'standalone_network_plugin_segmentation_id',
        help='Its VLAN, or whatever tells it from others of its '
        'kind. Required but for flat networks.',
    ),
    cfg.ListOpt(
        'standalone_network_plugin_allowed_ip_ranges',
        help='Addresses that may be handed out, and ranges of them '
        'as first-last; all of the network when unset. Set it '
        'when others use addresses of the network, too.',
    ),
    cfg.IntOpt(
        'standalone_network_plugin_mtu',
        default=1500,
        help='Largest packet of the network, in bytes.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, GROUP)


def register_network(conf: cfg.ConfigOpts, group: str) -> None:
    """Make the options known in a section, too."""
    conf.register_opts(OPTS, group)


def values(conf: cfg.ConfigOpts, group: str) -> dict[str, Any]:
    """What holds for a section: what it says, else what DEFAULT says."""
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
