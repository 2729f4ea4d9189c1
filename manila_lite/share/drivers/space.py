"""Sizes of shares, and the errors of file systems that are full."""

import errno
import re

GIB = 1024**3

_OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT)
_SIZE = re.compile(r'[1-9][0-9]{0,8}')


def is_out_of_space(error: OSError) -> bool:
    return error.errno in _OUT_OF_SPACE


def managed_size(size: int, used: int, requested: object | None) -> int:
    """Return the size in GiB of something being managed.

    It is the requested size if there is one, else the given size, enlarged
    if the content needs more. Raises ValueError if the content exceeds the
    requested size or that is not a valid size.
    """
    needed = max(1, -(-used // GIB))
    if requested is not None:
        if not _SIZE.fullmatch(str(requested)):
            raise ValueError(f'{requested!r} is not a size in GiB')
        size = int(str(requested))
        if size < needed:
            raise ValueError(f'its content needs {needed} GiB, not {size}')
    return max(size, needed)
