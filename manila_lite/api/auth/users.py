"""The file of users for HTTP basic authentication.

One user per line, `name:hash:user id:project id:role,role`, with a hash in
the format of bcrypt. Empty lines and lines that start with # are ignored and
preserved.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import dataclasses
import fcntl
import os
import re
import tempfile

import bcrypt
from oslo_config import cfg
from oslo_log import log

from manila_lite import exception
from manila_lite.context import RequestContext

# bcrypt refuses longer passwords, but only when they are verified.
MAX_PASSWORD_BYTES = 72

_WORD = re.compile(r'[A-Za-z0-9_.@+-]{1,255}')
_HASH = re.compile(
    r'\$2[aby]\$(0[4-9]|[12]\d|3[01])\$'
    r'[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}'
)
_IMPLIED = {'admin': ('member', 'reader'), 'member': ('reader',)}
ROLES = ('admin', 'member', 'reader')
"""The roles of the default policies."""
# The hash of a random password after its cost. It is verified where no hash
# of a user is.
_DUMMY_HASH = 'K8uADi8UoJV3rC.lvXUpQuaB3DVvEGrQuIMW7qh9sErEbVdDzECaa'
_DEFAULT_COST = 12


@dataclasses.dataclass(frozen=True)
class User:
    """A user of the file; raises InvalidInput for malformed values."""

    name: str
    hash: str = dataclasses.field(repr=False)
    user_id: str
    project_id: str
    roles: tuple[str, ...]

    def __post_init__(self) -> None:
        for field, value in (
            ('name', self.name),
            ('user id', self.user_id),
            ('project id', self.project_id),
            *(('role', role) for role in self.roles),
        ):
            if not _WORD.fullmatch(value):
                raise exception.InvalidInput(
                    reason=f'a {field} may contain letters, digits and _.@+-'
                )
        if not self.roles:
            raise exception.InvalidInput(reason='a user needs at least one role')
        if not _HASH.fullmatch(self.hash):
            raise exception.InvalidInput(reason='the hash is not a bcrypt hash')

    @property
    def cost(self) -> int:
        """The binary logarithm of the number of rounds of the hash."""
        return int(self.hash[4:6])

    @property
    def all_roles(self) -> list[str]:
        """The roles and those they imply, as Keystone would list them."""
        return sorted(
            {
                *self.roles,
                *(implied for role in self.roles for implied in _IMPLIED.get(role, ())),
            }
        )


def verify_password(
    user: User | None, password: bytes, highest_cost: int = _DEFAULT_COST
) -> bool:
    """Return whether the password is right.

    A refusal costs as much as one hash of the highest cost in the file,
    whatever the user's own is and if there is none, so the response time does
    not reveal which names exist.
    """
    if len(password) > MAX_PASSWORD_BYTES:
        return False
    if user is None:
        bcrypt.checkpw(password, _dummy_hash(highest_cost))
        return False
    if bcrypt.checkpw(password, user.hash.encode()):
        return True
    # Each step doubles the sum so far.
    for cost in range(user.cost, highest_cost):
        bcrypt.checkpw(password, _dummy_hash(cost))
    return False


def highest_cost(users: Iterable[User]) -> int:
    """Return the highest cost of the users' hashes."""
    return max((user.cost for user in users), default=_DEFAULT_COST)


def _dummy_hash(cost: int) -> bytes:
    return f'$2b${cost:02}${_DUMMY_HASH}'.encode()


def read(path: str) -> dict[str, User]:
    """Return the users of the file by name.

    Raises OSError if the file cannot be read, and cfg.ConfigFileParseError if
    it is malformed; the error gives the line number and never its content.
    """
    users: dict[str, User] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith('#'):
            continue
        try:
            user = _parse(line)
        except (ValueError, exception.InvalidInput):
            raise cfg.ConfigFileParseError(
                path, f'line {number} is not name:hash:user id:project id:role,role'
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
    """Add a user to the file, which is created if missing.

    Raises InvalidInput if a value is malformed or the name exists.
    """
    hashed = _hash(password, cost)
    user = User(
        name, hashed, user_id, project_id, tuple(role.lower() for role in roles)
    )
    with edited_lines(path) as lines:
        if any(_is_line_of(line, name) for line in lines):
            raise exception.InvalidInput(reason=f'user {name} exists')
        lines.append(
            ':'.join((name, hashed, user_id, project_id, ','.join(user.roles)))
        )
    return user


def set_password(path: str, name: str, password: str, *, cost: int = 12) -> None:
    """Replace the password of a user; raises NotFound for unknown names."""
    hashed = _hash(password, cost)
    with edited_lines(path) as lines:
        for number, line in enumerate(lines):
            if _is_line_of(line, name):
                parts = line.split(':')
                parts[1] = hashed
                lines[number] = ':'.join(parts)
                return
        raise exception.ResourceNotFound(resource='User', id=name)


def _hash(password: str, cost: int) -> str:
    secret = password.encode()
    if not 0 < len(secret) <= MAX_PASSWORD_BYTES:
        raise exception.InvalidInput(
            reason=f'a password must have 1 to {MAX_PASSWORD_BYTES} bytes'
        )
    return bcrypt.hashpw(secret, bcrypt.gensalt(cost)).decode()


def remove(path: str, name: str) -> None:
    """Remove a user from the file; raises NotFound for unknown names."""
    with edited_lines(path) as lines:
        remaining = [line for line in lines if not _is_line_of(line, name)]
        if len(remaining) == len(lines):
            raise exception.ResourceNotFound(resource='User', id=name)
        lines[:] = remaining


def _parse(line: str) -> User:
    name, hashed, user_id, project_id, roles = line.strip().split(':')
    return User(
        name,
        hashed,
        user_id,
        project_id,
        tuple(role.strip().lower() for role in roles.split(',')),
    )


def _is_line_of(line: str, name: str) -> bool:
    return line.lstrip().startswith(f'{name}:') and not line.startswith('#')


LOG = log.getLogger(__name__)


class CurrentUsers:
    """Reads the file of users; a change takes effect with the next call.

    Raises cfg.ConfigFileParseError if the file is malformed at the start;
    later, the error is logged once and the previous users are kept.
    """

    def __init__(self, path: str):
        self._path = path
        # The state of the file and its users, replaced as one value, so that
        # a thread that reads slowly cannot hide a later change.
        self._loaded = (file_state(self._path), self._read())

    def by_name(self) -> Mapping[str, User]:
        """Return all users by their names."""
        old_state, loaded_users = self._loaded
        state = file_state(self._path)
        if state != old_state:
            try:
                loaded_users = self._read()
            except cfg.ConfigFileParseError as error:
                LOG.error('Malformed users file, keeping the previous users: %s', error)
            self._loaded = (state, loaded_users)
        return loaded_users

    def users_like(self, ctx: RequestContext, wanted: str | None) -> Iterable[User]:
        """Return all users; none exists because a request names it."""
        return self.by_name().values()

    def _read(self) -> dict[str, User]:
        try:
            return read(self._path)
        except OSError as error:
            LOG.warning('Cannot read the users file; all logins fail: %s', error)
            return {}


def read_lines(path: str) -> list[str]:
    """Return the lines of a file; raises OSError."""
    # Invalid bytes are replaced here; who parses their line refuses it.
    with open(path, encoding='utf-8', errors='replace') as file:
        return file.read().splitlines()


def file_state(path: str) -> tuple[int, int, int] | None:
    """Return what differs after each change; None without a file."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


@contextlib.contextmanager
def edited_lines(path: str) -> Iterator[list[str]]:
    """Yield the lines of the file, which then atomically replace it."""
    folder = os.path.dirname(os.path.abspath(path))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Without the lock one of two concurrent changes would be lost.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        lines = read_lines(path) if os.path.exists(path) else []
        yield lines
        _replace(path, folder, lines)
    finally:
        os.close(descriptor)


def _replace(path: str, folder: str, lines: list[str]) -> None:
    owner = os.stat(path if os.path.exists(path) else folder)
    # mkstemp creates files that only their owner can read.
    descriptor, temporary = tempfile.mkstemp(
        dir=folder, prefix=f'.{os.path.basename(path)}-'
    )
    try:
        with open(descriptor, 'w', encoding='utf-8') as file:
            if os.geteuid() == 0:  # the service must still be able to read it
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            file.writelines(f'{line}\n' for line in lines)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
