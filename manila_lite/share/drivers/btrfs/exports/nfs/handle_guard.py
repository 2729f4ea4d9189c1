"""The guard that keeps NFS clients in the volume that is exported to them."""

import pathlib

from manila_lite.share.drivers.handle_guard import HandleGuard

GUARD = HandleGuard(
    'libfsalvfs.so',
    'nfs-ganesha-vfs',
    pathlib.Path(__file__).with_suffix('.c'),
    'manila-lite-manage storage build-guard',
)
