"""The commands of `manila-lite-manage storage`, for the driver btrfs."""

import argparse
import os
import pathlib
import re
import typing

from oslo_utils import strutils

from manila_lite import exception
from manila_lite.cmd import console
from manila_lite.share.drivers.btrfs import daemons
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs import machine

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_-]{0,63}')
_SIZE = re.compile(r'([1-9][0-9]{0,8})([MGT])i?B?', re.IGNORECASE)
_SECTION = """
# Add {name} to enabled_share_backends in section [DEFAULT]. Set the addresses
# that clients can reach.
[{name}]
share_driver = btrfs
driver_handles_share_servers = false
share_backend_name = {name}
btrfs_root = {root}
btrfs_pools = {name}:{pool}
btrfs_export_addresses = 127.0.0.1
"""


def check(args: argparse.Namespace) -> int:
    """print what this machine lacks for shares on btrfs: exit code 0 or 1"""
    code = 0
    for requirement in machine.REQUIREMENTS:
        is_met = requirement.is_met()
        code = code if is_met else 1
        print(
            f'{requirement.name}: '
            f'{"ok" if is_met else f"missing; {requirement.remedy}"}'
        )
    return code


def prepare(args: argparse.Namespace) -> None:
    """create a pool in a file or on a device, and print its section"""
    folder = pathlib.Path(os.path.abspath(args.folder))
    if args.device:
        pool = pathlib.Path(os.path.abspath(args.device))
        machine.format_device(pool)
    else:
        pool = folder / f'{args.pool}.img'
        machine.create_image(pool, args.size)
    print(
        _SECTION.format(name=args.pool, root=folder / args.pool, pool=pool),
        end='',
    )


def stop(args: argparse.Namespace) -> None:
    """end the NFS server of a back end and unmount its pools"""
    root = pathlib.Path(os.path.abspath(args.root))
    if not (root / 'nfs').is_dir():
        raise exception.InvalidInput(reason=f'{root} is no btrfs_root')
    daemons.Daemons(root / 'nfs', root / 'exports', 0, []).stop()
    kernel.unmount_below(root)


def add_to(nouns: typing.Any) -> None:
    """Add the commands."""
    parsers = console.add(
        nouns,
        'storage',
        'disks of this machine for shares on btrfs',
        check=check,
        prepare=prepare,
        stop=stop,
    )
    parsers['prepare'].add_argument(
        '--pool', required=True, type=_name, help='name of pool and back end'
    )
    parsers['prepare'].add_argument(
        '--size',
        default=20 << 30,
        type=_bytes,
        help='of the file, for instance 20G, the default',
    )
    parsers['prepare'].add_argument(
        '--device', metavar='D', help='an empty device instead of a file'
    )
    parsers['prepare'].add_argument(
        '--folder',
        default='/var/lib/manila',
        help='directory of the file and of the state of the back end '
        '(default: /var/lib/manila)',
    )
    parsers['stop'].add_argument(
        '--root', required=True, metavar='DIR', help='its btrfs_root'
    )


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f'{text!r} is not a name')
    return text


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f'{text!r} is not a size like 20G')
    return strutils.string_to_bytes(
        f'{match[1]}{match[2].upper()}B', return_int=True
    )
