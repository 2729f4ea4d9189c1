"""What the driver needs of root's privileges, and which code uses them.

The share service is an ordinary user with the capabilities below, and no
others. The drop-in of systemd, the check of the machine and the documentation
have the same ones. They are used by:

    kernel            system calls: mounts, namespaces, sizes, volumes
    transfer          `btrfs send` and `btrfs receive`
    server_network    `ip`, `bridge`, `nsenter` and `unshare`
    supervisor        starts dbus-daemon, NFS-Ganesha and smbd
    daemons           starts the supervisor
    smb_server        `smbcontrol` and `smbstatus`
    smb_users         `smbpasswd` and `pdbedit`
    machine           `mkfs.btrfs`, for the operator
    trials            what a container may refuse, for the operator
    privileges        becomes root, see below

No other module starts a program or calls the kernel by itself. Mounts are
made and removed by `pool` and `pool_disks` (pools), `exports` and
`mount_table` (volumes), `server_network` and `servers` (what is left of share
servers), and `trials` only. Names that users choose are in no path and no
argument.

NFS-Ganesha, smbd, their bus and the commands of Samba are of the user root,
with the same capabilities. The kernel takes away the privileges of a server
that acts as another user only if its own user is root: as any other user,
NFS-Ganesha would let its users change the directories of each other. Samba
lets everyone with access use all files only as root, and its commands talk
only to an smbd of their own user.
"""

import os
from typing import Any, NamedTuple

from manila_lite.share.drivers import capabilities

_ROOT = 0


class Capability(NamedTuple):
    """One of root's privileges, and what the driver needs it for."""

    name: str
    purpose: str


CAPABILITIES = (
    Capability(
        'CAP_SYS_ADMIN',
        'mount pools and exports, limit and read sizes, delete and send '
        'volumes, and create namespaces',
    ),
    Capability('CAP_SYS_CHROOT', 'confine `btrfs receive` to the pool it writes to'),
    Capability(
        'CAP_DAC_OVERRIDE', 'use devices, the directories of root and files of users'
    ),
    Capability('CAP_DAC_READ_SEARCH', 'let NFS-Ganesha open files by their handles'),
    Capability('CAP_CHOWN', 'preserve the owners of files'),
    Capability('CAP_FOWNER', 'preserve the modes and times of files'),
    Capability('CAP_FSETID', 'preserve the set-group-ID bits of files'),
    Capability('CAP_SETFCAP', 'preserve the file capabilities of files'),
    Capability('CAP_MKNOD', 'preserve the device files in shares'),
    Capability(
        'CAP_SETUID', 'start servers as root, and let them act as the users of clients'
    ),
    Capability(
        'CAP_SETGID', 'start servers as root, and let them act as the groups of clients'
    ),
    Capability('CAP_KILL', 'end the servers, which are of another user'),
)
"""What every back end needs."""

CIFS_CAPABILITIES = (Capability('CAP_NET_BIND_SERVICE', 'let smbd listen on port 445'),)
"""What CIFS shares need besides."""

SERVER_CAPABILITIES = (
    Capability('CAP_NET_ADMIN', 'set up the networks of share servers'),
)
"""What share servers need besides."""


def missing(*needed: Capability) -> list[Capability]:
    """Return which of these this process lacks."""
    names = capabilities.missing(each.name for each in needed)
    return [each for each in needed if each.name in names]


def become_root() -> None:
    """Let this process, which is to become a server, be of the user root.

    It gets no other capabilities than it has.
    """
    os.setgroups([])
    os.setresgid(_ROOT, _ROOT, _ROOT)
    os.setresuid(_ROOT, _ROOT, _ROOT)


def as_root() -> dict[str, Any]:
    """Return the arguments of `subprocess` that do so for a command."""
    if os.geteuid() == _ROOT:
        return {}
    return {'user': _ROOT, 'group': _ROOT, 'extra_groups': []}
