"""Access rules as lines of exports(5), which NFS servers read."""

from collections.abc import Sequence
import ipaddress
import pathlib

from manila_lite.share.drivers.contract.values import AccessReply
from manila_lite.share.drivers.contract.values import AccessRuleForDriver

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HEADER = '# Written by manila_lite. What is changed here will be lost.\n'
_QUOTED = frozenset(' \t\n#"\\')


def format_exports(
    directory: pathlib.Path,
    rules: Sequence[AccessRuleForDriver],
    options: str,
    *,
    read_only: bool = False,
) -> tuple[str | None, dict[str, AccessReply]]:
    """Return the text (None if no client has access) and the replies.

    NFS servers know clients by address only: rules of other types fail. The
    narrowest network comes first, since servers use the first match.
    """
    replies: dict[str, AccessReply] = {}
    clients: list[tuple[Network, str]] = []
    for rule in rules:
        network = _network(rule)
        if network is None:
            replies[rule['access_id']] = {
                'state': 'error',
                'reason': 'NFS takes rules of the type ip only',
            }
        else:
            replies[rule['access_id']] = {'state': 'active'}
            level = 'ro' if read_only else rule['access_level']
            clients.append(
                (network, f'{_address(network)}({level},{options})')
            )
    if not clients:
        return None, replies
    clients.sort(
        key=lambda client: (
            client[0].version,
            -client[0].prefixlen,
            int(client[0][0]),
        )
    )
    line = ' '.join(
        [_quoted(str(directory)), *(client for _, client in clients)]
    )
    return f'{_HEADER}{line}\n', replies


def _network(rule: AccessRuleForDriver) -> Network | None:
    # The zone of an address may be any text; the API refuses it, too.
    if rule['access_type'] != 'ip' or '%' in rule['access_to']:
        return None
    try:
        return ipaddress.ip_network(rule['access_to'], strict=False)
    except ValueError:
        return None


def _address(network: Network) -> str:
    if network.prefixlen == network.max_prefixlen:
        return str(network.network_address)
    return str(network)


def _quoted(path: str) -> str:
    """Escape a path for exports(5)."""
    return ''.join(
        f'\\{ord(letter):03o}' if letter in _QUOTED else letter
        for letter in path
    )
