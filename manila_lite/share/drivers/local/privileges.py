"""What a process needs to handle the files of users.

Users write files that only they may read. A service that is not root keeps
these three of root's privileges for snapshots, reverts and deletions; the
systemd units give them to it.
"""

import pathlib

_NEEDED = {'CAP_CHOWN': 0, 'CAP_DAC_OVERRIDE': 1, 'CAP_FOWNER': 3}
_STATUS = pathlib.Path('/proc/thread-self/status')


def missing() -> list[str]:
    """Return the names of the privileges that this process lacks."""
    found = _effective()
    return [name for name, bit in _NEEDED.items() if not found >> bit & 1]


def can_change_owners() -> bool:
    """Whether this process may give files to other users."""
    return bool(_effective() >> _NEEDED['CAP_CHOWN'] & 1)


def _effective() -> int:
    for line in _STATUS.read_text(encoding='ascii').splitlines():
        name, _, value = line.partition(':')
        if name == 'CapEff':
            return int(value, 16)
    return 0
