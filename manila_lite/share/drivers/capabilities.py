"""Which parts of root's privileges this process has, see capabilities(7)."""

from collections.abc import Iterable
import pathlib

_STATUS = pathlib.Path('/proc/thread-self/status')
_BITS = {
    'CAP_CHOWN': 0,
    'CAP_DAC_OVERRIDE': 1,
    'CAP_DAC_READ_SEARCH': 2,
    'CAP_FOWNER': 3,
    'CAP_FSETID': 4,
    'CAP_KILL': 5,
    'CAP_SETGID': 6,
    'CAP_SETUID': 7,
    'CAP_NET_BIND_SERVICE': 10,
    'CAP_NET_ADMIN': 12,
    'CAP_SYS_CHROOT': 18,
    'CAP_SYS_ADMIN': 21,
    'CAP_MKNOD': 27,
    'CAP_SETFCAP': 31,
}

FOR_FILES_OF_USERS = ('CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER')
"""What a process needs to handle files that only their users may read.

A service that is not root keeps them for snapshots, reverts and deletions;
the systemd units give them to it.
"""


def missing(names: Iterable[str]) -> list[str]:
    """Return which of these this process lacks."""
    found = _effective()
    return [name for name in names if not found >> _BITS[name] & 1]


def _effective() -> int:
    for line in _STATUS.read_text(encoding='ascii').splitlines():
        name, _, value = line.partition(':')
        if name == 'CapEff':
            return int(value, 16)
    return 0
