"""The network of a share server: a namespace with links to bridges.

    <folder>/netns    where the namespace is mounted

Each address has a link of its own, whose other end is attached to the bridge
of its network last: a link that is attached is complete. Names and hardware
addresses follow from the server, so that clients find one that was created
again at once.

Networks that share a bridge are told apart by the VLAN of the port. The link
is started only when the port belongs to its VLAN and to no other one: until
then nothing is sent.

Clients may know an address from a server that is gone, for half a minute or
longer. Therefore the kernel is asked to announce the addresses, which it does
when the hardware address is set and the settings below allow it.
"""

from collections.abc import Iterable, Sequence
import contextlib
import hashlib
import ipaddress
import os
import pathlib
import re
import subprocess
import time
from typing import Any, NamedTuple

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel

SEGMENT = '{segmentation_id}'
_DEVICES = pathlib.Path('/sys/class/net')
_BRIDGE = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,14}')
_HARDWARE_ADDRESS = re.compile('[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}')
_TIMEOUT = 60.0
_INTERVAL = 0.002
_VLANS = range(1, 4095)
_UP = 1  # IFF_UP
_FORWARDING = '3'
_FORWARDING_TIMEOUT = 1.0
_LET_IT_ANNOUNCE = (
    'for setting in /proc/sys/net/ipv?/conf/default/*_notify; do '
    'echo 1 > "$setting"; done'
)


class Link(NamedTuple):
    """A pair of network devices, and the address of the inner one."""

    name: str
    hardware_address: str
    bridge: str
    address: str
    gateway: str | None
    mtu: int | None
    vlan: int | None = None
    """The VLAN of the port, if the bridge carries several."""

    @property
    def host(self) -> str:
        """The address without the length of its prefix."""
        return self.address.partition('/')[0]


# What a server needs


def check_template(template: str | None) -> None:
    """Raise ValueError if an option does not name bridges."""
    if not template:
        raise ValueError('share servers need a bridge of this machine')
    if not _BRIDGE.fullmatch(template.replace(SEGMENT, '4094', 1)):
        raise ValueError(f'{template} is not the name of a bridge')


def links_for(
    server_id: str, network_info: Iterable[base.NetworkInfo], template: str
) -> list[Link]:
    """Return the links of a server, one for each of its addresses.

    Raises ShareBackendException if the network cannot be used.
    """
    links: list[Link] = []
    versions_with_route: set[int] = set()
    for info in network_info:
        for allocation in info['network_allocations']:
            own = _own_or_of_subnet(allocation, info)
            try:
                address = ipaddress.ip_interface(
                    f'{allocation["ip_address"]}/'
                    f'{ipaddress.ip_network(own["cidr"]).prefixlen}'
                )
                gateway = own['gateway'] and ipaddress.ip_address(own['gateway'])
            except ValueError as error:
                raise exception.ShareBackendException(
                    msg=f'share server {server_id}: {error}'
                ) from error
            # A server has one default route for each version of IP.
            if address.version in versions_with_route or (
                gateway and gateway.version != address.version
            ):
                gateway = None
            if gateway:
                versions_with_route.add(address.version)
            digest = hashlib.sha256(f'{server_id} {len(links)}'.encode()).hexdigest()
            bridge, vlan = _bridge_and_vlan(own, template)
            links.append(
                Link(
                    f'ml{digest[:13]}',
                    _given_address(allocation) or _hardware_address(digest),
                    bridge,
                    str(address),
                    str(gateway) if gateway else None,
                    own['mtu'],
                    vlan,
                )
            )
    if not links:
        raise exception.ShareBackendException(
            msg=f'share server {server_id} has no address'
        )
    return links


def _own_or_of_subnet(
    allocation: base.NetworkAllocation, info: base.NetworkInfo
) -> dict[str, Any]:
    """Return what an address says about its network, or else the subnet."""
    of_subnet: dict[str, Any] = dict(info)
    of_address: dict[str, Any] = dict(allocation)
    return {
        key: of_subnet.get(key) if of_address.get(key) is None else of_address[key]
        for key in ('cidr', 'gateway', 'mtu', 'network_type', 'segmentation_id')
    }


def _given_address(allocation: base.NetworkAllocation) -> str | None:
    given = allocation['mac_address']
    if given and not _HARDWARE_ADDRESS.fullmatch(given):
        raise exception.ShareBackendException(
            msg=f'{given!r} is not a hardware address'
        )
    return given


def _hardware_address(digest: str) -> str:
    """Return an address that is locally administered."""
    return ':'.join(['02', *(digest[n : n + 2] for n in range(20, 30, 2))])


def _bridge_and_vlan(network: dict[str, Any], template: str) -> tuple[str, int | None]:
    segment = network['segmentation_id']
    if SEGMENT in template:
        if segment is None:
            raise exception.ShareBackendException(
                msg=f'btrfs_bridge is {template}, and the network of the '
                'share server has no segmentation id'
            )
        return template.replace(SEGMENT, str(segment)), None
    if network['network_type'] in (None, 'flat'):
        return template, None
    if network['network_type'] != 'vlan':
        raise exception.ShareBackendException(
            msg=f'the network of the share server has the type '
            f'{network["network_type"]}, for which btrfs_bridge has to '
            f'contain {SEGMENT}'
        )
    if segment is None or int(segment) not in _VLANS:
        raise exception.ShareBackendException(
            msg='the network of the share server has the type vlan, and '
            f'{segment} is not the id of a VLAN'
        )
    return template, int(segment)


def require_bridge(name: str) -> None:
    """Raise StorageUnavailable if there is no such bridge."""
    if not (_DEVICES / name / 'bridge').is_dir():
        raise exception.StorageUnavailable(
            reason=f'there is no bridge {name}, see btrfs_bridge'
        )


def require_ports(links: Iterable[Link]) -> None:
    """Raise StorageUnavailable if there is no bridge for one of the links."""
    for link in links:
        _require_port(link)


def _require_port(link: Link) -> None:
    """Raise StorageUnavailable if there is no bridge to attach a link to.

    Without a filter, what is sent in one VLAN would reach all of them.
    """
    require_bridge(link.bridge)
    if link.vlan is None:
        return
    filters = _DEVICES / link.bridge / 'bridge' / 'vlan_filtering'
    if not filters.exists():
        raise exception.StorageUnavailable(
            reason=f'the kernel has no VLANs on bridges such as {link.bridge}'
            f'; use a bridge for each VLAN, and {SEGMENT} in btrfs_bridge'
        )
    if filters.read_text().strip() != '1':
        raise exception.StorageUnavailable(
            reason=f'the bridge {link.bridge} does not tell VLANs apart, see '
            'vlan_filtering in ip-link(8)'
        )


def port_commands(link: Link) -> list[tuple[str, list[str]]]:
    """Return what attaches and starts a link: programs and their lines."""
    size = f' mtu {link.mtu}' if link.mtu else ''
    master = f'link set {link.name} master {link.bridge}'
    if link.vlan is None:
        return [('ip', [f'link set {link.name}{size} up', master])]
    return [
        ('ip', [f'link set {link.name} down', master]),
        (
            'bridge',
            [
                f'vlan del dev {link.name} vid 1-4094',
                f'vlan add dev {link.name} vid {link.vlan} pvid untagged',
            ],
        ),
        ('ip', [f'link set {link.name}{size} up']),
    ]


# The network of one server


class ServerNetwork:
    """A namespace and its links, which may be there in part."""

    def __init__(self, folder: pathlib.Path):
        self.namespace = folder / 'netns'

    def is_complete(self, links: Iterable[Link]) -> bool:
        return self.has_namespace() and all(map(_is_attached, links))

    def ensure(self, links: Sequence[Link]) -> bool:
        """Create what is missing; return whether a link was."""
        require_ports(links)
        self.ensure_namespace(links)
        is_changed = False
        for number, link in enumerate(links):
            if not _is_attached(link):
                is_changed = True
                self._attach(link, f'eth{number}')
        return is_changed

    def ensure_namespace(self, links: Sequence[Link]) -> None:
        """Create the namespace, without links, unless there is one.

        Processes in an earlier namespace have lost their network.
        """
        if not self.has_namespace():
            self.remove(links)
            self.namespace.touch(mode=0o600)
            _run(
                'unshare',
                f'--net={self.namespace}',
                *('sh', '-c', f'{_LET_IT_ANNOUNCE} || :'),
            )

    def announce(self, links: Iterable[Link]) -> None:
        """Announce the addresses of the server to clients on the bridges."""
        deadline = time.monotonic() + _FORWARDING_TIMEOUT
        lines = []
        for number, link in enumerate(links):
            while not _is_forwarded(link) and time.monotonic() < deadline:
                time.sleep(_INTERVAL)
            lines.append(f'link set eth{number} address {link.hardware_address}')
        _ip(*lines, namespace=self.namespace)

    def _attach(self, link: Link, inner: str) -> None:
        if not _exists(link.name):
            # Both ends appear and disappear together.
            _ip(
                f'link add {link.name} type veth peer name {inner} '
                f'address {link.hardware_address} netns {self.namespace}'
            )
        size = f' mtu {link.mtu}' if link.mtu else ''
        # The plug-in has made sure that nothing else uses the address.
        option = ' nodad' if ':' in link.address else ''
        lines = [
            'link set lo up',
            f'link set {inner}{size} up',
            f'address replace {link.address} dev {inner}{option}',
        ]
        if link.gateway:
            lines.append(f'route replace default via {link.gateway} dev {inner} onlink')
        _ip(*lines, namespace=self.namespace)
        for program, lines in port_commands(link):
            _batch(program, lines)

    def remove(self, links: Iterable[Link]) -> None:
        """Remove the namespace and the links; what is missing is success."""
        for link in links:
            with contextlib.suppress(_Missing):
                if _exists(link.name):
                    _ip(f'link delete {link.name}')
        while self.has_namespace():
            kernel.unmount(self.namespace)
        self.namespace.unlink(missing_ok=True)

    def has_namespace(self) -> bool:
        return self.namespace.exists() and os.path.ismount(self.namespace)


class _Missing(exception.ShareBackendException):
    """A device has disappeared by itself."""


def _exists(device: str) -> bool:
    return (_DEVICES / device).exists()


def _is_attached(link: Link) -> bool:
    device = _DEVICES / link.name
    try:
        master = os.readlink(device / 'master').rpartition('/')[2]
        return master == link.bridge and (
            link.vlan is None or bool(_flags(device) & _UP)
        )
    except FileNotFoundError:
        return False


def _flags(device: pathlib.Path) -> int:
    return int((device / 'flags').read_text(), 16)


def _is_forwarded(link: Link) -> bool:
    """Return whether the bridge passes on what the link sends."""
    try:
        state = (_DEVICES / link.name / 'brport' / 'state').read_text()
    except FileNotFoundError:
        return False
    return state.strip() == _FORWARDING


def _ip(*lines: str, namespace: pathlib.Path | None = None) -> None:
    """Run commands of ip(8) one after the other."""
    prefix = ['nsenter', f'--net={namespace}', '--'] if namespace else []
    _batch('ip', lines, prefix)


def _batch(program: str, lines: Iterable[str], prefix: Sequence[str] = ()) -> None:
    _run(*prefix, program, '-batch', '-', text='\n'.join(lines))


def _run(*command: str, text: str = '') -> None:
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise exception.ShareBackendException(msg=str(error)) from error
    if done.returncode:
        reason = ' '.join(done.stderr.split())
        message = f'{text or " ".join(command)}: {reason}'
        if 'Cannot find device' in reason:
            raise _Missing(msg=message)
        raise exception.ShareBackendException(msg=message)
