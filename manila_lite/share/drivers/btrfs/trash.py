"""Volumes that are being removed, in the pool and beside the others.

The supervisor empties the trash. It imports little, to stay small.
"""

import logging
import os
import pathlib
import uuid

from manila_lite.share.drivers.btrfs import kernel

LOG = logging.getLogger(__name__)

_TRASH = '.trash-'


def discard(path: pathlib.Path) -> None:
    """Move a volume to the trash; a missing one is success."""
    try:
        path.rename(path.with_name(f'{_TRASH}{uuid.uuid4().hex}'))
    except FileNotFoundError:
        return


def empty(folder: pathlib.Path) -> None:
    """Remove what is in the trash of a folder of volumes.

    What cannot be removed now is left for the next time. The kernel frees the
    space in the background.
    """
    try:
        names = os.listdir(folder)
    except OSError:  # not mounted now
        return
    for name in names:
        if name.startswith(_TRASH):
            try:
                kernel.destroy(folder / name)
            except OSError as error:
                LOG.warning('%s/%s: %s', folder, name, error)
