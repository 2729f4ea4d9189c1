"""What is wrong with the options of a back end, before it starts."""

import ipaddress
import os
import pathlib
from typing import NoReturn

from manila_lite import exception
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.share.drivers.btrfs.servers import server_network, servers
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.ganesha import safe_path
from manila_lite.share.drivers.records import checked_file_name


def check(configuration: Configuration, root: pathlib.Path) -> None:
    """Raise BadConfiguration if a back end cannot start with its options.

    `root` is the real path of its `btrfs_root`.
    """
    if not os.path.isabs(configuration.btrfs_root):
        _refuse(
            configuration,
            f'btrfs_root {configuration.btrfs_root} is not an absolute path',
        )
    safe_path(root)
    if not configuration.btrfs_pools:
        _refuse(
            configuration,
            'btrfs_pools names no pool; create one with "manila-lite-manage '
            'storage prepare"',
        )
    for name in configuration.btrfs_pools:
        checked_file_name(name)
    if configuration.driver_handles_share_servers:
        _check_servers(configuration, root)
    else:
        _check_addresses(configuration, root)


def _check_servers(configuration: Configuration, root: pathlib.Path) -> None:
    servers.check_root(root)
    bridge = configuration.btrfs_bridge
    try:
        server_network.check_template(bridge)
        if server_network.SEGMENT not in bridge:
            server_network.require_bridge(bridge)
    except ValueError as error:
        _refuse(configuration, f'btrfs_bridge: {error}', error)
    if any((root / 'exports').glob('*.conf')):
        _refuse(
            configuration,
            f'there are shares without a share server in {root}, and '
            'driver_handles_share_servers is true',
        )


def _check_addresses(configuration: Configuration, root: pathlib.Path) -> None:
    if servers.has_servers(root):
        _refuse(
            configuration,
            f'there are share servers in {root}, and '
            'driver_handles_share_servers is false',
        )
    for address in configuration.btrfs_export_addresses or ['']:
        try:
            ipaddress.ip_address(address)
        except ValueError as error:
            _refuse(configuration, f'btrfs_export_addresses: {error}', error)


def check_privileges(configuration: Configuration) -> None:
    """Raise BadConfiguration if this process lacks a capability."""
    lacking = privileges.missing(
        *privileges.CAPABILITIES,
        *(privileges.CIFS_CAPABILITIES if configuration.btrfs_cifs else ()),
        *(
            privileges.SERVER_CAPABILITIES
            if configuration.driver_handles_share_servers
            else ()
        ),
    )
    if lacking:
        named = ', '.join(f'{name} (to {why})' for name, why in lacking)
        _refuse(
            configuration,
            f'the share service lacks {named}; run it as root, or use the '
            'drop-in of its systemd unit',
        )


def _refuse(
    configuration: Configuration, reason: str, cause: Exception | None = None
) -> NoReturn:
    raise exception.BadConfiguration(
        reason=f'back end "{configuration.config_group}": {reason}'
    ) from cause
