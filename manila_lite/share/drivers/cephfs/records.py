"""What a back end knows of its shares, and the fencing tokens of its callers.

All of it is in the omap of one object, so that a change is made only if the
worker that makes it still has the latest token: both are compared in the same
operation of RADOS. A worker that was paused and lost its claim changes
nothing, whichever node it is on.

    share:NAME           the record of a share
    snapshot:NAME        the record of a snapshot
    replica:NAME         the role of a share, see `replicas`
    owner:SUBVOLUME      the name of the share that owns a subvolume
    owner:SUBVOLUME@NAME the name of the snapshot that owns one of Ceph
    token:RESOURCE       the latest token, and when it was seen
    export:SUBVOLUME     how NFS gateways export it, see `exports`
    exports              the numbers of exports
    identity             a UUID that no other back end has
    probe                written to see whether that works

The identity is read and compared together with the others: a configuration
file may lead to another cluster than before, which has none of the shares.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import json
import random
import threading
import time
from typing import Any, NamedTuple
import uuid

from manila_lite import exception
from manila_lite.context import FencingToken, current_fencing_token
from manila_lite.share.drivers.cephfs.cluster import Cluster
from manila_lite.share.drivers.fencing import KEEP_SECONDS

Record = dict[str, Any]
Values = Mapping[str, Any]

SHARE = 'share:'
SNAPSHOT = 'snapshot:'
REPLICA = 'replica:'
OWNER = 'owner:'
TOKEN = 'token:'
PROBE = 'probe'
IDENTITY = 'identity'

_ATTEMPTS = 100
_CLAIM = 'a late call '
_FORGET_INTERVAL = 86400
_REMOVED_AT_ONCE = 100
_REMEMBERED = 100


class _Doubtful(Exception):
    """What was not read is wrong, or may be."""


class _Changed(NamedTuple):
    """The values of keys, and whether any was changed."""

    values: dict[str, Any]
    is_written: bool


class Records:
    """The records of one back end."""

    def __init__(self, cluster: Cluster, name: str, clock: Callable[[], float]):
        self.name, self._cluster, self._clock = name, cluster, clock
        self._forgotten_at = 0.0
        self._identity: str | None = None  # as it was claimed
        self._lock = threading.Lock()
        # What was written for the latest calls, by their tokens.
        self._written: dict[FencingToken | None, dict[str, str]] = {}

    def get(self, key: str) -> Any:
        """Return the value of a key, or None."""
        return self.get_several(key)[key]

    def get_several(self, *keys: str) -> dict[str, Any]:
        found = self._read(keys)
        return {key: _value(found.get(key, '')) for key in keys}

    def get_all(self, prefix: str) -> dict[str, Record]:
        """Return all values of keys with a prefix, by the rest of the key."""
        self._read(())
        found = self._cluster.read_all(self.name, prefix)
        return {
            key.removeprefix(prefix): json.loads(value) for key, value in found.items()
        }

    def change(
        self,
        *keys: str,
        decide: Callable[[Values], Values | None],
        are_new: bool = False,
    ) -> dict[str, Any]:
        """Change keys as `decide` says, and return the values of all of them.

        It is called with the values of the keys, again if another worker has
        changed one meanwhile, and returns those to set; None removes one.
        Raises StaleFencingToken after a call with a later token.

        What is expected to be new, or was written by the same work before, is not
        read first: it is compared when it is changed.
        """
        token = current_fencing_token()
        read = keys if token is None else (*keys, _token_key(token))
        expected = {} if are_new else self._written.get(token, {})
        if are_new or expected.keys() >= set(read):

            def decide_unread(values: Values) -> Values | None:
                try:
                    return decide(values)
                except exception.ManilaLiteError as error:
                    raise _Doubtful from error

            with contextlib.suppress(_Doubtful):
                changed = self._try_to_change(token, keys, expected, decide_unread)
                if changed is not None and changed.is_written:
                    return changed.values
        for attempt in range(_ATTEMPTS):
            found = self._read(read)
            changed = self._try_to_change(token, keys, found, decide)
            if changed is not None:
                return changed.values
            time.sleep(random.uniform(0, 0.005 * attempt))
        raise exception.ShareBackendException(msg=f'others keep changing {self.name}')

    def _try_to_change(
        self,
        token: FencingToken | None,
        keys: Sequence[str],
        found: Mapping[str, str],
        decide: Callable[[Values], Values | None],
    ) -> _Changed | None:
        """Change keys whose texts are these; return None if one is not."""
        changes = self._new_token(token, found)
        values = {key: _value(found.get(key, '')) for key in keys}
        wanted = {
            key: value
            for key, value in (decide(values) or {}).items()
            if key not in values or values[key] != value
        }
        removed = [key for key, value in wanted.items() if value is None]
        changes |= {
            key: json.dumps(value) for key, value in wanted.items() if value is not None
        }
        if not changes and not removed:
            return _Changed(values, is_written=False)
        read = keys if token is None else (*keys, _token_key(token))
        compared = {key: found.get(key, '') for key in read}
        if not self._cluster.write(self.name, compared | self._own, changes, removed):
            return None
        if token is not None:
            texts = compared | changes | dict.fromkeys(removed, '')
            with self._lock:
                self._written[token] = self._written.pop(token, {}) | texts
                if len(self._written) > _REMEMBERED:
                    del self._written[next(iter(self._written))]
        return _Changed(values | wanted, is_written=True)

    def update(self, key: str, decide: Callable[[Any], Any]) -> Any:
        """Change one key to what `decide` makes of its value, and return that."""
        return self.change(key, decide=lambda values: {key: decide(values[key])})[key]

    def find_identity(self) -> str | None:
        return _value(self._cluster.read(self.name, [IDENTITY]).get(IDENTITY, ''))

    def create_identity(self) -> str:
        """Write a new identity, unless there is one; return what is there."""
        new = json.dumps(str(uuid.uuid4()))
        self._cluster.write(self.name, {IDENTITY: ''}, {IDENTITY: new})
        found = self.find_identity()
        assert found is not None
        return found

    def keep_to(self, identity: str) -> None:
        """From now on, raise StorageUnavailable if the identity is another one."""
        self._identity = identity

    @property
    def _own(self) -> dict[str, str]:
        """What every read and every change requires to be present."""
        if self._identity is None:
            return {}
        return {IDENTITY: json.dumps(self._identity)}

    def _read(self, keys: Iterable[str]) -> dict[str, str]:
        found = self._cluster.read(self.name, [*keys, *self._own])
        identity = _value(found.get(IDENTITY, ''))
        if self._identity not in (None, identity):
            raise exception.StorageUnavailable(
                reason=f'the cluster is not the one that has the shares: {self.name} '
                f'is {identity or "new"} there and not {self._identity}'
            )
        return found

    @contextlib.contextmanager
    def claimed(self, owner: str) -> Iterator[bool]:
        """Own something during the block, and yield whether nothing else owns it.

        For late calls: their token is no longer valid.
        """
        claim = json.dumps(f'{_CLAIM}{uuid.uuid4()}')
        absent = {owner: ''} | self._own
        if not self._cluster.write(self.name, absent, {owner: claim}):
            yield False
            return
        yield True
        self._cluster.write(self.name, {owner: claim}, {}, [owner])

    def admit_call(self) -> None:
        """Record the token of the current call.

        Raises StaleFencingToken after a call with a later one.
        """
        if current_fencing_token() is not None:
            self.change(decide=lambda values: None)

    def fence(self) -> dict[str, Any] | None:
        """Return what forbids a command of the current call, for `Cluster.mgr`."""
        token = current_fencing_token()
        if token is None:
            return None
        return {
            'object': self.name,
            'key': _token_key(token),
            'value': token.value,
            'compare': self._own,
        }

    def check_call(self) -> None:
        """Raise StaleFencingToken if a later call came during this one.

        Called before commands that change something, which have no token.
        """
        token = current_fencing_token()
        if token is not None:
            key = _token_key(token)
            _check(token, self._read([key]).get(key, ''))

    def _new_token(
        self, token: FencingToken | None, found: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the key of a token that is later than the known one."""
        if token is None:
            return {}
        key = _token_key(token)
        if token.value <= _check(token, found.get(key, '')):
            return {}
        return {key: json.dumps([token.value, int(self._clock())])}

    def try_to_write(self) -> None:
        """Raise an error if the object cannot be written to."""
        now = json.dumps(int(self._clock()))
        self._cluster.write(self.name, {}, {PROBE: now})

    def forget_old_tokens(self) -> None:
        """Once a day, remove the tokens of workers that no longer exist."""
        now = self._clock()
        if now - self._forgotten_at < _FORGET_INTERVAL:
            return
        self._forgotten_at = now
        found = self._cluster.read_all(self.name, TOKEN)
        old = [
            key
            for key, value in found.items()
            if json.loads(value)[1] < now - KEEP_SECONDS
        ]
        for start in range(0, len(old), _REMOVED_AT_ONCE):
            keys = old[start : start + _REMOVED_AT_ONCE]
            # If one was seen meanwhile, all of them wait another day.
            self._cluster.write(self.name, {key: found[key] for key in keys}, {}, keys)


def _token_key(token: FencingToken) -> str:
    return TOKEN + token.resource


def _value(text: str) -> Any:
    return json.loads(text) if text else None


def _check(token: FencingToken, found: str) -> int:
    seen = json.loads(found)[0] if found else 0
    if token.value < seen:
        raise exception.StaleFencingToken(resource=token.resource, seen=seen)
    return seen
