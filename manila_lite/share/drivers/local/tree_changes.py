"""The recorded changes of a directory tree, and how they are applied.

Each is a rename from or to a directory beside the tree, or sets attributes.
Those already made are recognised, so that all are applied again after an
interruption.
"""

import contextlib
import os
import pathlib
import stat
import typing

from manila_lite.share.drivers import records, trees
from manila_lite.share.drivers.trees import Attributes

NEW, OLD, PLAN = 'new', 'old', 'plan.json'

PUT, REMOVE, SET = 'put', 'remove', 'set'


def find_plan(staged: pathlib.Path) -> records.Record | None:
    """Return the plan of staged changes, or None."""
    return records.find(staged / PLAN)


def write_plan(staged: pathlib.Path, plan: records.Record) -> None:
    records.write(staged / PLAN, plan, durable=True)


def apply(
    copy: pathlib.Path, staged: pathlib.Path, changes: list[list[typing.Any]]
) -> None:
    """Apply all changes, or those that remain."""
    with (
        trees.opened_directory(copy) as root,
        trees.opened_directory(staged / NEW) as new,
        trees.opened_directory(staged / OLD) as old,
    ):
        for kind, parts, name, value in changes:
            with trees.opened_below(root, tuple(parts)) as directory:
                if kind == SET:
                    _set(directory, name, value)
                    continue
                _make_writable(directory)
                if kind == PUT:
                    _put(directory, name, value, new)
                else:
                    _remove(directory, name, value, old)


def _put(directory: int, name: str, number: str, new: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # already moved
        os.rename(number, name, src_dir_fd=new, dst_dir_fd=directory)


def _remove(directory: int, name: str, number: str, old: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.lstat(number, dir_fd=old)
        return  # already removed; what is there now replaced it
    with contextlib.suppress(NotADirectoryError):  # the entry `..` in it changes
        subdirectory = os.open(name, trees.DIRECTORY_FLAGS, dir_fd=directory)
        try:
            _make_writable(subdirectory)
        finally:
            os.close(subdirectory)
    try:
        os.rename(name, number, src_dir_fd=directory, dst_dir_fd=old)
    except FileNotFoundError:  # do not remove what replaces it later
        os.mknod(number, stat.S_IFREG | stat.S_IRUSR, dir_fd=old)


def _set(directory: int, name: str | None, values: list[typing.Any]) -> None:
    mode, uid, gid, atime_ns, mtime_ns, xattrs = values
    wanted = Attributes(
        mode,
        uid,
        gid,
        atime_ns,
        mtime_ns,
        {each: bytes.fromhex(value) for each, value in xattrs.items()},
    )
    if name is None:
        wanted.apply(directory)
        return
    file = os.open(name, trees.SOURCE_FLAGS, dir_fd=directory)
    try:
        wanted.apply(file)
    finally:
        os.close(file)


def _make_writable(directory: int) -> None:
    """Grant the owner access to the directory; its mode is set later."""
    mode = stat.S_IMODE(os.fstat(directory).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(directory, mode | stat.S_IRWXU)
