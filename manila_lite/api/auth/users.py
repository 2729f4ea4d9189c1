"""The file of users who sign in by name and password.

One user per line, `name:hash:user id:project id:role,role`, with the hash
as bcrypt writes it. Empty lines and lines that start with # mean nothing
and stay where they are.
"""

from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import fcntl
import os
import re
import tempfile

import bcrypt
from oslo_config import cfg

from manila_lite import exception

# bcrypt refuses more, and says so only when somebody tries to sign in.
MAX_PASSWORD_BYTES = 72

_WORD = re.compile(r'[A-Za-z0-9_.@+-]{1,255}')
_HASH = re.compile(
    r'\$2[aby]\$(0[4-9]|[12]\d|3[01])\$'
    r'[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}'
)
_IMPLIED = {'admin': ('member', 'reader'), 'member': ('reader',)}
# Of a password nobody knows: refusing an unknown name takes the work of
# refusing a known one, or the time taken would tell which names exist.
_NOBODYS_HASH = '$2b$12$K8uADi8UoJV3rC.lvXUpQuaB3DVvEGrQuIMW7qh9sErEbVdDzECaa'


@dataclasses.dataclass(frozen=True)
class User:
    """Somebody who may sign in; raises InvalidInput for odd values."""

    name: str
    hash: str = dataclasses.field(repr=False)
    user_id: str
    project_id: str
    roles: tuple[str, ...]

    def __post_init__(self) -> None:
        for what, value in (
            ('name', self.name),
            ('user id', self.user_id),
            ('project id', self.project_id),
            *(('role', role) for role in self.roles),
        ):
            if not _WORD.fullmatch(value):
                raise exception.InvalidInput(
                    reason=f'a {what} has letters, digits and _.@+- only'
                )
        if not self.roles:
            raise exception.InvalidInput(reason='a user needs a role')
        if not _HASH.fullmatch(self.hash):
            raise exception.InvalidInput(reason="the hash is not bcrypt's")

    @property
    def all_roles(self) -> list[str]:
        """The roles with those they imply, as Keystone would list them."""
        return sorted(
            {
                *self.roles,
                *(
                    implied
                    for role in self.roles
                    for implied in _IMPLIED.get(role, ())
                ),
            }
        )


def verify_password(user: User | None, password: bytes) -> bool:
    """Tell whether it is the user's; nobody is refused just as slowly."""
    if len(password) > MAX_PASSWORD_BYTES:
        return False
    hashed = user.hash if user else _NOBODYS_HASH
    return bcrypt.checkpw(password, hashed.encode()) and user is not None


def read(path: str) -> dict[str, User]:
    """The users of the file, by name.

    Raises OSError when there is no file, and cfg.ConfigFileParseError,
    which says the line and never its content, when it has no sense.
    """
    users: dict[str, User] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip() or line.startswith('#'):
            continue
        try:
            user = _parsed(line)
        except (ValueError, exception.InvalidInput):
            raise cfg.ConfigFileParseError(
                path,
                f'line {number} is not name:hash:user id:project id:role,role',
            ) from None
        if user.name in users:
            raise cfg.ConfigFileParseError(
                path, f'line {number} names {user.name} again'
            )
        users[user.name] = user
    return users


def add(
    path: str,
    name: str,
    password: str,
    user_id: str,
    project_id: str,
    roles: Iterable[str],
    *,
    cost: int = 12,
) -> User:
    """Put a user into the file, which is made when there is none.

    Raises InvalidInput when a value is of no use or the name is taken.
    """
    secret = password.encode()
    if not 0 < len(secret) <= MAX_PASSWORD_BYTES:
        raise exception.InvalidInput(
            reason=f'a password has 1 to {MAX_PASSWORD_BYTES} bytes'
        )
    hashed = bcrypt.hashpw(secret, bcrypt.gensalt(cost)).decode()
    user = User(
        name,
        hashed,
        user_id,
        project_id,
        tuple(role.lower() for role in roles),
    )
    with _changed(path) as lines:
        if any(_is_of(line, name) for line in lines):
            raise exception.InvalidInput(reason=f'user {name} exists')
        lines.append(
            ':'.join((name, hashed, user_id, project_id, ','.join(user.roles)))
        )
    return user


def remove(path: str, name: str) -> None:
    """Take a user out of the file; raises NotFound when not there."""
    with _changed(path) as lines:
        left = [line for line in lines if not _is_of(line, name)]
        if len(left) == len(lines):
            raise exception.ResourceNotFound(resource='User', id=name)
        lines[:] = left


def _lines(path: str) -> list[str]:
    # Odd bytes are no error here: the line they are in is refused.
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read().splitlines()


def _parsed(line: str) -> User:
    name, hashed, user_id, project_id, roles = line.strip().split(':')
    return User(
        name,
        hashed,
        user_id,
        project_id,
        tuple(role.strip().lower() for role in roles.split(',')),
    )


def _is_of(line: str, name: str) -> bool:
    return line.lstrip().startswith(f'{name}:') and not line.startswith('#')


@contextlib.contextmanager
def _changed(path: str) -> Iterator[list[str]]:
    """The lines of the file; as left, they replace the file in one step."""
    folder = os.path.dirname(os.path.abspath(path))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Two who change the file at once would lose one change.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        lines = _lines(path) if os.path.exists(path) else []
        yield lines
        _replace(path, folder, lines)
    finally:
        os.close(descriptor)


def _replace(path: str, folder: str, lines: list[str]) -> None:
    owner = os.stat(path if os.path.exists(path) else folder)
    # mkstemp makes files that only their owner reads.
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix='.users-')
    try:
        with open(descriptor, 'w', encoding='utf-8') as file:
            if os.geteuid() == 0:  # the service still has to read it
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            file.writelines(f'{line}\n' for line in lines)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
