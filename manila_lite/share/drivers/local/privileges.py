"""What a process needs to handle the files of users.

Users write files that only they may read. A service that is not root keeps
these three of root's privileges for snapshots, reverts and deletions; the
systemd units give them to it.
"""

from manila_lite.share.drivers import capabilities

_NEEDED = ('CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER')


def missing() -> list[str]:
    """Return the names of the privileges that this process lacks."""
    return capabilities.missing(_NEEDED)


def can_change_owners() -> bool:
    """Whether this process may give files to other users."""
    return not capabilities.missing(['CAP_CHOWN'])
