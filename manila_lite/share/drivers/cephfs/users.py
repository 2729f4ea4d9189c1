"""The Ceph users of a subvolume: those of its clients, and those of the driver."""

from collections.abc import Iterable

from manila_lite.share.drivers.cephfs.backend import MISSING, CephfsBackend
from manila_lite.share.drivers.cephfs.cluster import CommandFailed, ignoring

CEPHX = 'cephx'
"""The type of access rules that name one."""

INTERNAL = 'manila-lite-'
"""The prefix of the names of users that the driver creates for itself."""

WRITING = f'{INTERNAL}revert-'
"""The prefix of the names of users that give a share the content of a snapshot."""

READING = f'{INTERNAL}read-'
"""The prefix of the names of users that read the snapshot for it elsewhere."""

COPYING = f'{INTERNAL}copy-'
"""The prefix of the names of users by which the data service copies shares."""

_MOUNTED_ONCE = WRITING, READING, COPYING


def list_users(backend: CephfsBackend, subvolume: str) -> dict[str, str]:
    """Return the users with access to a subvolume, and their levels."""
    found = _list_all(backend, subvolume)
    return {
        user: level for user, level in found.items() if not user.startswith(INTERNAL)
    }


def _list_all(backend: CephfsBackend, subvolume: str) -> dict[str, str]:
    found = backend.ask('subvolume authorized_list', sub_name=subvolume)
    return {user: level for one in found for user, level in one.items()}


def authorize(
    backend: CephfsBackend,
    subvolume: str,
    user: str,
    level: str,
    project_id: str | None = INTERNAL,
) -> str:
    """Let a user read or write, and return its key."""
    return backend.order(
        'subvolume authorize',
        sub_name=subvolume,
        auth_id=user,
        access_level=level,
        tenant_id=project_id,
    ).strip()


def evict(backend: CephfsBackend, subvolume: str, user: str) -> None:
    """End the sessions of a user, with the files that its clients have open."""
    backend.order('subvolume evict', sub_name=subvolume, auth_id=user)


def revoke(backend: CephfsBackend, subvolume: str, user: str) -> None:
    """Deauthorize a user, then evict its clients.

    In this order: a client that was evicted first could mount again. A process of
    ours never does; it is evicted first, as another call finds it by its user.
    """
    if user.startswith(_MOUNTED_ONCE):
        evict(backend, subvolume, user)
    try:
        backend.order('subvolume deauthorize', sub_name=subvolume, auth_id=user)
    except CommandFailed as error:
        if error.errno != MISSING or not error.status.startswith('auth ID'):
            raise
    evict(backend, subvolume, user)


def revoke_all(backend: CephfsBackend, subvolume: str, prefix: str = '') -> None:
    """Revoke all users whose names have a prefix, if the subvolume is there."""
    with ignoring(MISSING):
        for user in _list_all(backend, subvolume):
            if user.startswith(prefix):
                revoke(backend, subvolume, user)


def list_writers(backend: CephfsBackend, subvolume: str) -> list[str]:
    """Return the users of clients that may write to a subvolume."""
    users = list_users(backend, subvolume)
    return sorted(user for user, level in users.items() if level == 'rw')


def deny_writing(
    backend: CephfsBackend, subvolume: str, project_id: str | None
) -> None:
    """Let clients only read, with the keys that they have.

    Those that could write are evicted: what they have not sent is lost to them.
    """
    for user in list_writers(backend, subvolume):
        authorize(backend, subvolume, user, 'r', project_id)
        evict(backend, subvolume, user)


def allow_writing(
    backend: CephfsBackend, subvolume: str, users: Iterable[str], project_id: str | None
) -> None:
    """Let users write again that still can read."""
    known = list_users(backend, subvolume)
    for user in users:
        if user in known:
            authorize(backend, subvolume, user, 'rw', project_id)


def revoke_clients(backend: CephfsBackend, subvolume: str) -> None:
    """Revoke the users of all clients."""
    for user in list_users(backend, subvolume):
        revoke(backend, subvolume, user)
