"""Remove untrusted directory trees, as `trees` copies them."""

from collections.abc import Iterator
import contextlib
import errno
import os
import pathlib
import stat
import uuid

from manila_lite.share.drivers.trees import VANISHED_ERRORS, opened_entry, path_of

_MOST_PASSES = 50


def remove_tree(top: pathlib.Path) -> None:
    """Remove a directory of any depth and mode; a missing one is fine."""
    try:
        with accessible_directory(top) as root:
            empty_directory(root)
        top.rmdir()
    except FileNotFoundError:
        return
    except NotADirectoryError:  # a link
        top.unlink(missing_ok=True)


def remove_entry(name: str, parent: int) -> None:
    """Remove an entry of an open directory, whatever it is by now."""
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        with (
            contextlib.suppress(*VANISHED_ERRORS),
            accessible_directory(name, parent) as directory,
        ):
            empty_directory(directory)
        _remove_empty(name, parent)


def empty_directory(root: int) -> None:
    """Remove what is in an open directory, which users may still change.

    Subdirectories are moved to the top and emptied there, so that no path
    gets long. All names are looked up in open directories. What users create
    meanwhile is removed as well; raises OSError if they do not stop.
    """
    for _ in range(_MOST_PASSES):
        lifted = _remove_or_lift(root, root)
        for name in lifted:  # grows on the way
            with (
                contextlib.suppress(*VANISHED_ERRORS),
                accessible_directory(name, root) as directory,
            ):
                lifted += _remove_or_lift(directory, root)
        for name in reversed(lifted):
            _remove_empty(name, root)
        if not os.listdir(root):
            return
    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))


def _remove_or_lift(directory: int, root: int) -> list[str]:
    """Remove files; return the names that subdirectories have at the top."""
    lifted = []
    for name in os.listdir(directory):
        with contextlib.suppress(*VANISHED_ERRORS):
            try:
                os.unlink(name, dir_fd=directory)
            except IsADirectoryError:
                lifted.append(
                    name if directory == root else _lift(name, directory, root)
                )
    return lifted


def _lift(name: str, directory: int, root: int) -> str:
    new_name = uuid.uuid4().hex
    with accessible_directory(name, directory):  # its entry `..` changes
        os.rename(name, new_name, src_dir_fd=directory, dst_dir_fd=root)
    return new_name


def _remove_empty(name: str, root: int) -> None:
    try:
        os.rmdir(name, dir_fd=root)
    except NotADirectoryError:  # replaced by a link
        os.unlink(name, dir_fd=root)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


@contextlib.contextmanager
def accessible_directory(
    path: str | pathlib.Path, parent: int | None = None
) -> Iterator[int]:
    """Open a directory, whose mode is changed if it forbids that."""
    with opened_entry(path, parent) as entry:
        if not stat.S_ISDIR(os.fstat(entry).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, 'not a directory', path)
        here = path_of(entry)
        if not os.access(here, os.R_OK | os.W_OK | os.X_OK):
            os.chmod(here, stat.S_IRWXU)
        directory = os.open(here, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield directory
    finally:
        os.close(directory)
