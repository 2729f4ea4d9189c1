"""Whether the Ceph user of a back end may do what the driver does."""

import errno

from manila_lite import exception
from manila_lite.share.drivers.cephfs.backend import CephfsBackend
from manila_lite.share.drivers.cephfs.cluster import (
    GATEWAYS,
    NAMESPACE,
    CommandFailed,
    ConnectionRefused,
)
from manila_lite.share.drivers.cephfs.exports import sessions_of

_DENIED = (errno.EACCES, errno.EPERM)


def check(backend: CephfsBackend) -> None:
    """Raise BadConfiguration with the command that gives what is missing.

    Each kind of capability is tried by a call that needs it.
    """
    try:
        backend.find_filesystem()
        backend.cluster.mon('df')
    except CommandFailed as error:
        raise _explained(backend, error, 'mon') from error
    except ConnectionRefused as error:
        raise backend.bad_option(
            f'the Ceph cluster refuses client.{backend.cluster.client_id}: '
            f'{error.status}. Either its key is wrong, or it lacks a capability for '
            f'"mon". This command gives it all that the driver needs: '
            f'{auth_caps(backend)}'
        ) from error
    try:
        backend.run('subvolumegroup create')
    except CommandFailed as error:
        raise _explained(backend, error, 'mgr') from error
    try:
        backend.records.try_to_write()
        if backend.configuration.cephfs_nfs_gateways:
            backend.cluster.read(backend.records.name, ['probe'], GATEWAYS)
    except CommandFailed as error:
        raise _explained(backend, error, 'osd') from error
    if backend.configuration.cephfs_nfs_gateways:
        try:
            backend.evict(sessions_of(backend.records.name, '', 0))  # there are none
        except CommandFailed as error:
            raise _explained(backend, error, 'mds') from error


def check_gateway(backend: CephfsBackend) -> None:
    """Do the same for an NFS gateway, with its own Ceph user."""
    try:
        backend.find_filesystem()
        name = backend.records.name
        backend.cluster.read(name, ['probe'])
        backend.cluster.write(name, {}, {'probe': '0'}, namespace=GATEWAYS)
    except (CommandFailed, ConnectionRefused) as error:
        if isinstance(error, CommandFailed) and error.errno not in _DENIED:
            raise
        raise backend.bad_option(
            f'the Ceph cluster refuses client.{backend.cluster.client_id}: '
            f'{error.status}. This command gives it all that a gateway needs: '
            f'{gateway_caps(backend)}'
        ) from error


def _explained(
    backend: CephfsBackend, error: CommandFailed, kind: str
) -> exception.DriverError:
    if error.errno == errno.EOPNOTSUPP and kind == 'osd':
        return backend.bad_option(
            f'the pool {backend.cluster.pool} has no omap, as it is '
            'erasure-coded; name a replicated one in cephfs_records_pool'
        )
    if error.errno == errno.ENOPKG and kind == 'mds':
        return backend.bad_option(
            f'cephfs_python {backend.configuration.cephfs_python} lacks the module '
            f"cephfs ({error.status}); install Debian's python3-cephfs"
        )
    if error.errno not in _DENIED:
        return error
    return backend.bad_option(
        f'the Ceph user client.{backend.cluster.client_id} lacks a capability '
        f'for "{kind}": {error.status}. This command gives it all that the '
        f'driver needs: {auth_caps(backend)}'
    )


def auth_caps(backend: CephfsBackend) -> str:
    """Return the command that gives a user the least that is needed."""
    pool = backend.cluster.pool or 'POOL'
    gateways = backend.configuration.cephfs_nfs_gateways
    more = f', allow r pool={pool} namespace={GATEWAYS}' if gateways else ''
    mds = "mds 'allow *' " if gateways else ''
    return (
        f"ceph auth caps client.{backend.cluster.client_id} mon 'allow r' "
        f"mgr 'allow rw' {mds}osd 'allow rw pool={pool} namespace={NAMESPACE}{more}'"
    )


def gateway_caps(backend: CephfsBackend) -> str:
    """Return the command that gives the user of gateways the least it needs."""
    pool = backend.cluster.pool or 'POOL'
    return (
        f"ceph auth caps client.{backend.cluster.client_id} mon 'allow r' "
        f"osd 'allow r pool={pool} namespace={NAMESPACE}, "
        f"allow rw pool={pool} namespace={GATEWAYS}'"
    )
