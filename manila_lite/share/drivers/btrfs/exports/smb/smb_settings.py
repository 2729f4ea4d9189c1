"""The configuration of smbd, and where a back end has its files.

smb/smb.conf          what smbd reads; it includes the shares
smb/shares.conf       includes the files of the shares
smb/shares/…          one file per share or snapshot
smb/passwd, group     the users, seen by Samba only
smb/private           their passwords, as Samba stores them
"""

from collections.abc import Sequence
import os
import pathlib
import shlex
import stat
import sys
from typing import NamedTuple

from manila_lite.share.drivers import records
from manila_lite.share.drivers.ganesha import safe_path

FOLDERS = ('private', 'lock', 'state', 'cache', 'pid', 'ncalrpc', 'shares')
INDEX, LOG = 'shares.conf', 'smbd.log'
_FREE_SPACE = 'free-space'
_MODULE = 'manila_lite.share.drivers.btrfs.free_space'


def prepare(folder: pathlib.Path) -> None:
    """Create what Samba needs besides its users."""
    for name in ('', *FOLDERS):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    # smbd takes the path of a program, without arguments.
    script = folder / _FREE_SPACE
    text = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {_MODULE} "$1"\n'
    if not script.exists() or script.read_text() != text:
        records.write_text(script, text)
    script.chmod(stat.S_IRWXU)


def environment(folder: pathlib.Path) -> dict[str, str]:
    """Return what gives a program of Samba the users of a back end."""
    return {
        'LD_PRELOAD': 'libnss_wrapper.so',
        'NSS_WRAPPER_PASSWD': str(folder / 'passwd'),
        'NSS_WRAPPER_GROUP': str(folder / 'group'),
    }


def command_environment(folder: pathlib.Path) -> dict[str, str]:
    return os.environ | environment(folder)


class SmbConfig(NamedTuple):
    """The settings besides shares, and where smbd listens with them."""

    text: str
    addresses: Sequence[str]
    port: int


def base_config(folder: pathlib.Path, port: int, addresses: Sequence[str]) -> SmbConfig:
    """Return the settings besides shares: SMB 2 and later, and no printers.

    Links are not followed: they could lead to files of this machine.
    """
    path = safe_path(folder)
    text = f"""\
# Written by manila_lite. What is changed here will be lost.
[global]
    netbios name = MANILA
    server role = standalone server
    security = user
    map to guest = never
    restrict anonymous = 2
    server min protocol = SMB2
    disable netbios = yes
    multicast dns register = no
    smb ports = {port}
    interfaces = {' '.join(addresses)}
    bind interfaces only = yes
    access based share enum = yes
    passdb backend = tdbsam:{path}/private/passdb.tdb
    private dir = {path}/private
    lock directory = {path}/lock
    state directory = {path}/state
    cache directory = {path}/cache
    pid directory = {path}/pid
    ncalrpc dir = {path}/ncalrpc
    log file = {path}/{LOG}
    max log size = 16384
    load printers = no
    printing = bsd
    printcap name = /dev/null
    disable spoolss = yes
    follow symlinks = no
    wide links = no
    usershare max shares = 0
    dfree command = {path}/{_FREE_SPACE}
    dfree cache time = 10
    include = {path}/{INDEX}
"""
    return SmbConfig(text, addresses, port)
