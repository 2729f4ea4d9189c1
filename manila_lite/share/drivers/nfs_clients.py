"""Access rules as the clients that NFS servers know: addresses."""

from collections.abc import Callable, Sequence
import contextlib
import ipaddress
from typing import NamedTuple

from manila_lite.share.drivers.contract.values import AccessReply, AccessRuleForDriver

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Client(NamedTuple):
    """An address or a network, and what it may do: rw or ro."""

    network: str
    level: str


def clients_of(
    rules: Sequence[AccessRuleForDriver],
    read_only: bool = False,
    refusal: Callable[[Network], str | None] = lambda network: None,
) -> tuple[list[Client], dict[str, AccessReply]]:
    """Return the clients and the replies; rules of other types fail.

    So do those of networks for which the server has a reason of `refusal`.

    The narrowest network comes first, since servers use the first match.
    If two rules name the same network, the client may only read unless both
    let it write. Servers know an IPv4 client by its own address, also where
    a rule has the form ``::ffff:10.0.0.1``.
    """
    replies: dict[str, AccessReply] = {}
    levels: dict[Network, str] = {}
    for rule in rules:
        try:
            network, level = _network(rule), _level(rule)
            reason = refusal(network)
            if reason is not None:
                raise ValueError(reason)
        except ValueError as error:
            replies[rule['access_id']] = {'state': 'error', 'reason': str(error)}
            continue
        replies[rule['access_id']] = {'state': 'active'}
        if read_only:
            level = 'ro'
        levels[network] = min(level, levels.get(network, level))
    networks = sorted(
        levels,
        key=lambda network: (
            network.version,
            -network.prefixlen,
            int(network.network_address),
        ),
    )
    return [Client(_text(network), levels[network]) for network in networks], replies


def _network(rule: AccessRuleForDriver) -> Network:
    if rule['access_type'] != 'ip':
        raise ValueError('NFS takes rules of the type ip only')
    # An address with a zone means nothing to another host, and the zone may
    # be any text.
    if '%' not in rule['access_to']:
        with contextlib.suppress(ValueError):
            return _unmapped(ipaddress.ip_network(rule['access_to'], strict=False))
    raise ValueError('NFS takes addresses and networks only')


def _unmapped(network: Network) -> Network:
    """Return the IPv4 network that an IPv6 one maps, or the same one."""
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 96:
        address = network.network_address.ipv4_mapped
        if address is not None:
            return ipaddress.IPv4Network((address, network.prefixlen - 96))
    return network


def _level(rule: AccessRuleForDriver) -> str:
    if rule['access_level'] not in ('rw', 'ro'):
        raise ValueError('NFS takes the levels rw and ro only')
    return rule['access_level']


def _text(network: Network) -> str:
    if network.prefixlen == network.max_prefixlen:
        return str(network.network_address)
    return str(network)
