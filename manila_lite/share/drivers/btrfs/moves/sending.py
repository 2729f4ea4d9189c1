"""Send a copy of a volume on the basis of one that both pools have."""

from collections.abc import Callable
import contextlib
import pathlib
from typing import NamedTuple

from oslo_log import log

from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.btrfs.moves.copies import Copies
from manila_lite.share.drivers.btrfs.moves.transfer import TransferFailed, transfer

LOG = log.getLogger(__name__)


class CommonCopy(NamedTuple):
    """One copy in two pools."""

    theirs: pathlib.Path
    ours: pathlib.Path


def find_common(theirs: Copies, ours: Copies) -> CommonCopy | None:
    """Return the latest copy that both sides have."""
    return common_copy(by_content(theirs.whole()), ours)


def common_copy(sources: dict[bytes, pathlib.Path], ours: Copies) -> CommonCopy | None:
    """Return the latest copy that the other side has as well."""
    found = [
        CommonCopy(sources[id], path)
        for id, path in by_content(ours.whole()).items()
        if id in sources
    ]
    return found[-1] if found else None


def by_content(paths: list[pathlib.Path]) -> dict[bytes, pathlib.Path]:
    """Return copies by what they contain: one that was received is equal."""
    return {kernel.content_id(path): path for path in paths}


def send_copy(
    sent: pathlib.Path,
    theirs: Copies,
    ours: Copies,
    check: Callable[[], None],
    count: Callable[[int], None] = lambda sent: None,
) -> CommonCopy:
    """Send a copy on the basis of the latest one that both sides have.

    The result is the copy on both sides. Without a difference that is the
    one they had, and the other is discarded.
    """
    ours.prepare()
    common = find_common(theirs, ours)
    received = send_changes(sent, common, ours, check, count)
    if received is None:
        assert common is not None
        kernel.destroy(sent)
        return common
    return CommonCopy(sent, ours.confirm(received))


def send_snapshot(
    create_snapshot: Callable[[], pathlib.Path],
    target: str,
    theirs: Copies,
    ours: Copies,
    check: Callable[[], None],
    count: Callable[[int], None] = lambda sent: None,
) -> pathlib.Path:
    """Send a snapshot unless it was sent before; return our copy.

    `create_snapshot` returns the copy of it that is to be sent for the target. Ours
    remains also if the next one is equal.
    """
    earlier = ours.received_for(target)
    if earlier:
        return earlier[-1]
    for copies in (theirs, ours):
        copies.discard(target)  # of a process that was killed
    ours.prepare()
    common = find_common(theirs, ours)
    received = send_changes(create_snapshot(), common, ours, check, count, always=True)
    assert received is not None
    return ours.confirm(received)


def send_changes(
    sent: pathlib.Path,
    common: CommonCopy | None,
    ours: Copies,
    check: Callable[[], None],
    count: Callable[[int], None] = lambda sent: None,
    *,
    always: bool = False,
) -> pathlib.Path | None:
    """Send what has changed since the common copy, else everything.

    The result is that of `transfer`. If it fails, the copy is discarded on
    both sides.
    """
    for parent in [common.theirs, None] if common else [None]:
        try:
            return transfer(sent, parent, ours.folder, check, count, always=always)
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
