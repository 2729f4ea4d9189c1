"""The Ceph users of a subvolume: those of its clients, and those of the driver."""

from manila_lite.share.drivers.cephfs.backend import MISSING, CephfsBackend
from manila_lite.share.drivers.cephfs.cluster import CommandFailed

CEPHX = 'cephx'
"""The type of access rules that name one."""

INTERNAL = 'manila-lite-'
"""The names of users that the driver makes for itself begin so."""

REVERTING = f'{INTERNAL}revert-'
"""Those of the users that rewrite shares."""


def list_users(backend: CephfsBackend, subvolume: str) -> dict[str, str]:
    """Return the users with access to a subvolume, and their levels."""
    found = _list_all(backend, subvolume)
    return {
        user: level for user, level in found.items() if not user.startswith(INTERNAL)
    }


def _list_all(backend: CephfsBackend, subvolume: str) -> dict[str, str]:
    found = backend.ask('subvolume authorized_list', sub_name=subvolume)
    return {user: level for one in found for user, level in one.items()}


def revoke(backend: CephfsBackend, subvolume: str, user: str) -> None:
    """Let a user in no more, and cut its clients off, open files too.

    In this order: a client that was cut off first would come back. One that reverts
    does not, and it is found as long as its user exists.
    """
    if user.startswith(REVERTING):
        backend.order('subvolume evict', sub_name=subvolume, auth_id=user)
    try:
        backend.order('subvolume deauthorize', sub_name=subvolume, auth_id=user)
    except CommandFailed as error:
        if error.errno != MISSING or not error.status.startswith('auth ID'):
            raise
    backend.order('subvolume evict', sub_name=subvolume, auth_id=user)


def revoke_all(backend: CephfsBackend, subvolume: str, prefix: str = '') -> None:
    """Do this to all users whose names begin so, if the subvolume is there."""
    try:
        for user in _list_all(backend, subvolume):
            if user.startswith(prefix):
                revoke(backend, subvolume, user)
    except CommandFailed as error:
        if error.errno != MISSING:
            raise
