"""Volumes that are being removed, in the pool and beside the others.

The supervisor empties the trash. It imports little, to stay small.
"""

from collections.abc import Iterable
import contextlib
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


def empty(folders: Iterable[pathlib.Path]) -> None:
    """Remove what is in the trash of folders of volumes.

    What cannot be removed now is left for the next time. The kernel frees the
    space in the background.
    """
    for folder in folders:
        with contextlib.suppress(OSError):  # not mounted now
            for name in os.listdir(folder):
                if name.startswith(_TRASH):
                    _destroy(folder / name)


def _destroy(path: pathlib.Path) -> None:
    try:
        kernel.destroy(path)
    except OSError as error:
        LOG.warning('%s: %s', path, error)
