"""Validation and normal form of the clients that access rules name.

A rule is unique per share, type and normalised target, so everything that
can be spelled in more than one way is brought into one form here.
"""

from collections.abc import Callable
import ipaddress
import re

from manila_lite import exception

ACCESS_TYPES = ('ip', 'user', 'cert', 'cephx')

_USER = re.compile(r'[^"/\\\[\]:;|=,+*?<>\x00-\x1f\x7f]{4,255}')
_LEADING_ZERO = re.compile(r'.*/0[0-9]+')
_ONLY_DOTS_AND_BLANKS = re.compile(r'[. ]*')
# Drivers write names into line-based files.
_CERT = re.compile(r'[^\x00-\x1f\x7f]{1,64}')
_CEPHX = re.compile(r'[ -\-/-~]+')  # printable ASCII without the dot


def normalise(
    access_type: str, access_to: str, *, ipv6: bool = True, cephx: bool = True
) -> str:
    """Return `access_to` in its normal form; raises InvalidShareAccess.

    `ipv6` and `cephx` say whether the API version of the request has them.
    """
    normaliser = _NORMALISERS.get(access_type)
    if normaliser is None or (access_type == 'cephx' and not cephx):
        allowed = [name for name in ACCESS_TYPES if cephx or name != 'cephx']
        raise exception.InvalidShareAccess(
            reason=f'access_type must be one of {", ".join(allowed)}'
        )
    if access_type == 'ip':
        return _ip(access_to, ipv6)
    return normaliser(access_to)


def stored(access_type: str, access_to: str, target: str) -> str:
    """Return a client as it was written, or IPv4 if IPv6 maps it.

    Servers know it by its IPv4 address only. `target` is its normal form.
    """
    is_mapped = access_type == 'ip' and ':' in access_to and ':' not in target
    return target if is_mapped else access_to


def _ip(access_to: str, ipv6: bool = True) -> str:
    """Normalise a network; one with a single address becomes the address."""
    network: ipaddress.IPv4Network | ipaddress.IPv6Network
    if _LEADING_ZERO.fullmatch(access_to):
        raise _not_valid('ip', access_to)
    try:
        network = ipaddress.ip_network(access_to)
    except ValueError:
        raise _not_valid('ip', access_to) from None
    if network.version == 6 and (not ipv6 or '%' in access_to):
        raise _not_valid('ip', access_to)
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 96:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            network = ipaddress.IPv4Network((mapped, network.prefixlen - 96))
    if network.prefixlen == network.max_prefixlen:
        return str(network.network_address)
    return str(network)


def _user(access_to: str) -> str:
    if not _USER.fullmatch(access_to) or _ONLY_DOTS_AND_BLANKS.fullmatch(access_to):
        raise _not_valid('user', access_to)
    return access_to


def _cert(access_to: str) -> str:
    """Return the common name without surrounding blanks."""
    common_name = access_to.strip()
    if not _CERT.fullmatch(common_name):
        raise _not_valid('cert', access_to)
    return common_name


def _cephx(access_to: str) -> str:
    if len(access_to) > 255 or not _CEPHX.fullmatch(access_to):
        raise _not_valid('cephx', access_to)
    return access_to


_NORMALISERS: dict[str, Callable[[str], str]] = {
    'ip': _ip,
    'user': _user,
    'cert': _cert,
    'cephx': _cephx,
}


def _not_valid(access_type: str, access_to: str) -> Exception:
    return exception.InvalidShareAccess(
        reason=f'{access_to[:80]!r} is not a valid access_to for type {access_type}'
    )
