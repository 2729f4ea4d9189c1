"""Access rules as the clients that an NFS server knows: addresses."""

from collections.abc import Sequence
import ipaddress
from typing import NamedTuple

from manila_lite.share.drivers.contract.values import AccessReply
from manila_lite.share.drivers.contract.values import AccessRuleForDriver

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Client(NamedTuple):
    """An address or a network, and what it may do: rw or ro."""

    network: str
    level: str


def clients_of(
    rules: Sequence[AccessRuleForDriver], read_only: bool = False
) -> tuple[list[Client], dict[str, AccessReply]]:
    """Return the clients and the replies; rules of other types fail.

    The narrowest network comes first, since the server uses the first match.
    If two rules name the same network, the client may only read unless both
    let it write.
    """
    replies: dict[str, AccessReply] = {}
    levels: dict[_Network, str] = {}
    for rule in rules:
        network = _network(rule)
        if network is None or rule['access_level'] not in ('rw', 'ro'):
            replies[rule['access_id']] = {'state': 'error'}
            continue
        replies[rule['access_id']] = {'state': 'active'}
        level = 'ro' if read_only else rule['access_level']
        levels[network] = min(level, levels.get(network, level))
    networks = sorted(
        levels,
        key=lambda network: (
            network.version,
            -network.prefixlen,
            int(network.network_address),
        ),
    )
    return [
        Client(_text(network), levels[network]) for network in networks
    ], replies


def _network(rule: AccessRuleForDriver) -> _Network | None:
    # An address with a zone means nothing to another host, and the zone may
    # be any text.
    if rule['access_type'] != 'ip' or '%' in rule['access_to']:
        return None
    try:
        return ipaddress.ip_network(rule['access_to'], strict=False)
    except ValueError:
        return None


def _text(network: _Network) -> str:
    if network.prefixlen == network.max_prefixlen:
        return str(network.network_address)
    return str(network)
