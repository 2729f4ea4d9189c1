"""The key that signs the tokens of the identity API.

All API processes with the same file accept each other's tokens.
"""

import base64
import contextlib
import os
import secrets
import stat
import tempfile

from oslo_config import cfg
from oslo_log import log

LOG = log.getLogger(__name__)

KEY_BYTES = 32
_PREFIX = '.token-key-'


def read(path: str) -> bytes:
    """Return the key in the file, which is created if there is none.

    Raises cfg.ConfigFileParseError if that fails, or if the file is readable
    for others or no key.
    """
    try:
        try:
            return _read(path)
        except FileNotFoundError:
            _create(path)
            return _read(path)
    except OSError as error:
        raise cfg.ConfigFileParseError(
            path,
            f'{error.strerror}; the identity API keeps the key of its tokens '
            'here, see token_key_file and identity_api in section '
            '[http_basic]',
        ) from error


def _read(path: str) -> bytes:
    with open(path, 'rb') as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise cfg.ConfigFileParseError(
                path,
                'others than the owner may read or write this key; '
                'delete the file or change its mode to 0600',
            )
        text = file.read(1024)
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        key = b''
    if len(key) < KEY_BYTES:
        raise cfg.ConfigFileParseError(
            path, f'not a key of {KEY_BYTES} bytes in base64'
        )
    return key


def _create(path: str) -> None:
    """Create the file with a new key, unless another process is faster."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    # mkstemp creates files with mode 0600.
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=_PREFIX)
    try:
        with open(descriptor, 'wb') as file:
            key = secrets.token_bytes(KEY_BYTES)
            file.write(base64.b64encode(key) + b'\n')
            file.flush()
            os.fsync(descriptor)
        # A link, not a rename: it never replaces the key of another process,
        # and the file is complete as soon as it exists.
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
            LOG.info('Created the key for tokens, %s', path)
    finally:
        os.unlink(temporary)
