"""The commands of `manila-lite-manage storage`, most for the driver btrfs."""

import argparse
import os
import pathlib
import re
import time

from oslo_config import cfg
from oslo_utils import strutils

from manila_lite import exception
from manila_lite.cmd import console, disks
from manila_lite.share.drivers import handle_guard
from manila_lite.share.drivers.btrfs import kernel, machine, trials
from manila_lite.share.drivers.btrfs.daemons import daemons
from manila_lite.share.drivers.btrfs.exports.nfs.handle_guard import GUARD
from manila_lite.share.drivers.btrfs.exports.smb.smb_users import SmbUsers
from manila_lite.share.drivers.btrfs.servers import servers
from manila_lite.share.drivers.cephfs import capabilities, gateway
from manila_lite.share.drivers.cephfs.backend import CephfsBackend
from manila_lite.share.drivers.contract.configuration import Configuration

_FOLDER = pathlib.Path('/var/lib/manila-btrfs')
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
# For CIFS shares, too:
# btrfs_cifs = true
"""


def check(args: argparse.Namespace) -> int:
    """print what shares on btrfs or CephFS lack: exit code 0 or 1"""
    if args.driver == 'cephfs':
        return _check_cephfs(console.configure(args))
    code = 0
    for requirement in machine.REQUIREMENTS:
        code = max(code, _check(requirement))
    for trial in trials.TRIALS:
        code = max(code, _try(trial))
    for requirement in machine.CIFS_REQUIREMENTS:
        # Back ends without btrfs_cifs do not need it.
        _check(requirement, ' for CIFS')
    for requirement in machine.SERVER_REQUIREMENTS:
        # Nor do those without share servers.
        _check(requirement, ' for share servers')
    for trial in trials.SERVER_TRIALS:
        _try(trial, ' for share servers')
    return code


def _check_cephfs(conf: cfg.ConfigOpts) -> int:
    """Check the cluster of each back end, and what its Ceph user may do."""
    found = {
        name: Configuration(conf, name) for name in conf.enabled_share_backends or ()
    }
    backends = {
        name: CephfsBackend(options, time.time, time.sleep)
        for name, options in found.items()
        if options.share_driver == 'cephfs'
    }
    if not backends:
        print('enabled_share_backends names no back end with share_driver = cephfs')
        return 1
    code = 0
    for name, backend in backends.items():
        try:
            capabilities.check(backend)
            print(f'{name}: ok')
        except exception.DriverError as error:
            print(f'{name}: {error}')
            code = 1
    return code


def _check(requirement: machine.Requirement, of: str = '') -> int:
    is_met = requirement.is_met()
    print(
        f'{requirement.name}{of}: '
        f'{"ok" if is_met else f"missing; {requirement.remedy}"}'
    )
    return 0 if is_met else 1


def _try(trial: trials.Trial, of: str = '') -> int:
    problem = trial.failure_reason()
    print(f'{trial.name}{of}: {problem or "ok"}')
    return 1 if problem else 0


def prepare(args: argparse.Namespace) -> None:
    """create a pool in a file or on a device, and print its section"""
    folder = pathlib.Path(os.path.abspath(args.folder))
    if args.device:
        pool = pathlib.Path(os.path.abspath(args.device))
        machine.format_device(pool, f'manila-lite:{args.pool}')
    else:
        pool = folder / f'{args.pool}.img'
        machine.create_image(pool, args.size)
    print(_SECTION.format(name=args.pool, root=folder / args.pool, pool=pool), end='')


def build_guard(args: argparse.Namespace) -> None:
    """build what keeps NFS clients in their shares, and print its path"""
    guard = gateway.GUARD if args.driver == 'cephfs' else GUARD
    print(guard.build(pathlib.Path(args.folder)))


def stop(args: argparse.Namespace) -> None:
    """end the servers of a back end and unmount its pools"""
    root = pathlib.Path(args.root).resolve()
    if not (root / 'nfs').is_dir():
        raise exception.InvalidInput(reason=f'{root} is no btrfs_root')
    daemons.Daemons(root / 'nfs', root / 'exports', 0, []).stop()
    servers.stop_all(root)
    kernel.unmount_below(root)


def add_user(args: argparse.Namespace) -> None:
    """add a user of CIFS shares, or change its password, which it reads"""
    users = _users(args)
    users.add(args.name, console.password(args.name))


def list_users(args: argparse.Namespace) -> None:
    """list the users of CIFS shares"""
    console.print_table(('name',), ([name] for name in _users(args).names()))


def remove_user(args: argparse.Namespace) -> None:
    """remove a user of CIFS shares and end its sessions"""
    _users(args).remove(args.name)


def _users(args: argparse.Namespace) -> SmbUsers:
    root = pathlib.Path(args.root).resolve()
    if args.share_server:
        return servers.users_of(root, args.share_server)
    if servers.has_servers(root):
        raise exception.InvalidInput(
            reason='each share server of the back end has users of its own; '
            'name one with --share-server'
        )
    if not (root / 'smb').is_dir():
        raise exception.InvalidInput(
            reason=f'{root} is no btrfs_root of a back end that has been '
            'started with btrfs_cifs'
        )
    return SmbUsers(root / 'smb')


def add_to(nouns: console.Commands) -> None:
    """Add the commands."""
    verbs = nouns.add_parser(
        'storage', help='disks: of this machine for btrfs, and of all pools'
    ).add_subparsers(metavar='VERB', required=True)
    parsers = console.add_verbs(
        verbs, check=check, build_guard=build_guard, prepare=prepare, stop=stop
    )
    parsers['check'].add_argument(
        '--driver',
        choices=['btrfs', 'cephfs'],
        default='btrfs',
        help='btrfs, the default, needs programs of this machine; the back ends '
        'with cephfs need a cluster and a Ceph user that may use it',
    )
    parsers['build_guard'].add_argument(
        '--driver',
        choices=['btrfs', 'cephfs'],
        default='btrfs',
        help='whose NFS server is to have it: that of btrfs, the default, or the '
        'gateways of cephfs',
    )
    parsers['build_guard'].add_argument(
        '--folder',
        metavar='DIR',
        default=str(handle_guard.FOLDERS[0]),
        help=f'where to put it (default: {handle_guard.FOLDERS[0]}); it is '
        f'found there and in {handle_guard.FOLDERS[1]}',
    )
    disks.add_to(verbs)
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
        '--device',
        metavar='D',
        help='an empty device instead of a file, for instance /dev/disk/by-id/...',
    )
    parsers['prepare'].add_argument(
        '--folder',
        default=str(_FOLDER),
        help='directory of the file and of the state of the back end '
        f'(default: {_FOLDER})',
    )
    parsers['stop'].add_argument(
        '--root', required=True, metavar='DIR', help='its btrfs_root'
    )
    users = console.add(
        verbs,
        'user',
        'users of the CIFS shares of a back end',
        add=add_user,
        list=list_users,
        remove=remove_user,
    )
    for verb in ('add', 'list', 'remove'):
        users[verb].add_argument(
            '--root', required=True, metavar='DIR', help='its btrfs_root'
        )
        users[verb].add_argument(
            '--share-server',
            metavar='ID',
            help='the share server, if it has share servers',
        )
    for verb in ('add', 'remove'):
        users[verb].add_argument('name', metavar='NAME')


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f'{text!r} is not a name')
    return text


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f'{text!r} is not a size like 20G')
    return strutils.string_to_bytes(f'{match[1]}{match[2].upper()}B', return_int=True)
