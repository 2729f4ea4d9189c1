"""Which share an exported snapshot is of, as the file of its export says.

That is in the records of the pool, too, which may be lost while the snapshot
is still exported.
"""

from collections.abc import Iterator
import contextlib
import pathlib

from manila_lite.share.drivers.btrfs.catalog import Kind


def comment(of: str | None) -> str:
    """Return the line for the file of a snapshot of a volume, if it is one."""
    return f'# A snapshot of {of}.\n' if of else ''


def snapshots_of(folder: pathlib.Path, of: str) -> Iterator[str]:
    """Yield the snapshots of a volume whose exports have a file in a folder.

    An earlier version has not written of which volume they are.
    """
    for file in folder.glob(f'{Kind.SNAPSHOT}.*.conf'):
        with contextlib.suppress(FileNotFoundError):  # its export has ended
            if comment(of) in file.read_text():
                yield file.stem.partition('.')[2]
