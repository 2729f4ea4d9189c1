"""Send a copy of a volume on the basis of one that both pools have."""

from collections.abc import Callable
import contextlib
import pathlib
from typing import NamedTuple

from oslo_log import log

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.copies import Copies
from manila_lite.share.drivers.btrfs.transfer import TransferFailed
from manila_lite.share.drivers.btrfs.transfer import transfer

LOG = log.getLogger(__name__)


class CommonCopy(NamedTuple):
    """One copy in two pools."""

    theirs: pathlib.Path
    ours: pathlib.Path


def find_common(theirs: Copies, ours: Copies) -> CommonCopy | None:
    """Return the latest copy that both sides have."""
    sources = by_content(theirs.whole())
    found = [
        CommonCopy(sources[id], path)
        for id, path in by_content(ours.whole()).items()
        if id in sources
    ]
    return found[-1] if found else None


def by_content(paths: list[pathlib.Path]) -> dict[bytes, pathlib.Path]:
    """Return copies by what they contain: one that was received is equal."""
    return {kernel.content_id(path): path for path in paths}


def send_changes(
    sent: pathlib.Path,
    common: CommonCopy | None,
    ours: Copies,
    check: Callable[[], None],
    count: Callable[[int], None] = lambda sent: None,
) -> pathlib.Path | None:
    """Send what has changed since the common copy, else everything.

    The result is that of `transfer`. If it fails, the copy is discarded on
    both sides.
    """
    for parent in [common.theirs, None] if common else [None]:
        try:
            return transfer(sent, parent, ours.folder, check, count)
        except BaseException as error:
            received = ours.folder / sent.name
            with contextlib.suppress(OSError):
                if kernel.is_subvolume(received):
                    kernel.destroy(received)
            if (
                parent is not None
                and isinstance(error, TransferFailed)
                and not error.is_out_of_space
            ):
                LOG.warning('All of %s is sent: %s', sent.name, error)
                continue
            with contextlib.suppress(OSError):
                kernel.destroy(sent)
            raise
    raise AssertionError
