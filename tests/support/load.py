"""Much work at once, and what became of every request that was accepted.

`Load` asks for changes of shares, snapshots and access rules at a steady
rate, whoever answers or not. What was accepted has to be done or to have
failed visibly; what was asked and got no answer may be either way, or not
have been accepted at all.
"""

import collections
from collections.abc import Callable
from concurrent import futures
import contextlib
import random
import threading
import time
import typing

import requests
from urllib3.exceptions import NewConnectionError

from tests.support.rest_client import RestClient

CLIENTS = 8
NO_RESPONSE_ERRORS = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)

# How often each is asked for, of the sum of all.
WEIGHTS = {
    'create': 4,
    'delete': 2,
    'extend': 3,
    'shrink': 2,
    'take_snapshot': 4,
    'delete_snapshot': 2,
    'revert': 3,
    'allow': 5,
    'deny': 3,
}
_WRONG = (
    'error',
    'extending_error',
    'shrinking_error',
    'reverting_error',
    'error_deleting',
)


class TrackedResource:
    """A share, snapshot or rule that was asked for, by its id.

    `sizes` are those it may have; `wanted` the one that was accepted last.
    `may_go` says that its end was asked for, `goes` that this was
    accepted.
    """

    def __init__(self, id: str, size: int = 0):
        self.id = id
        self.sizes = {size}
        self.wanted: int | None = size
        self.may_go = self.goes = False


class TrackedShare(TrackedResource):
    def __init__(self, id: str, size: int):
        super().__init__(id, size)
        self.snapshots: dict[str, TrackedResource] = {}
        self.rules: dict[str, TrackedResource] = {}
        self.busy = threading.Lock()


class Load:
    """`per_minute` requests, from clients of their own, until `stop`."""

    def __init__(
        self, rest: Callable[[], RestClient], seed: int, per_minute: int = 200
    ):
        self._rest = rest
        self._between = 60 / per_minute
        self._seed = seed
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._next = time.monotonic()
        self.shares: dict[str, TrackedShare] = {}
        self.asked: collections.Counter[str] = collections.Counter()
        self.accepted: collections.Counter[str] = collections.Counter()
        self.unanswered = 0
        self.mistakes: list[str] = []
        self._pool = futures.ThreadPoolExecutor(CLIENTS)
        self._asking: list[futures.Future] = []

    def start(self) -> None:
        self._stop.clear()
        self._next = time.monotonic()
        self._asking = [
            self._pool.submit(self._ask_on, number)
            for number in range(CLIENTS)
        ]

    def stop(self) -> None:
        """Ask no more; raises what a client did not expect."""
        self._stop.set()
        for asking in self._asking:
            asking.result()

    # Asking

    def _ask_on(self, number: int) -> None:
        client = LoadClient(
            self, self._rest(), random.Random(f'{self._seed} {number}')
        )
        while not self._stop.wait(self._pause()):
            client.ask()

    def _pause(self) -> float:
        """Seconds until it is the turn of who asks."""
        with self._turn:
            now = time.monotonic()
            # What could not be asked in time is made up for later.
            self._next += self._between
            return max(0.0, self._next - now)

    def not_asked(self) -> None:
        """Nobody listens: somebody's turn comes once more, a bit later."""
        with self._turn:
            self._next -= self._between
        self._stop.wait(0.1)

    # What became of it

    def check(self, user: RestClient) -> list[str]:
        """What is wrong with the outcomes, now that nothing is owed."""
        found = {
            one['id']: one for one in user.get('/shares/detail')['shares']
        }
        snapshots = {
            one['id']: one
            for one in user.get('/snapshots/detail')['snapshots']
        }
        told = collections.defaultdict(set)
        for one in user.get('/messages')['messages']:
            told[one['resource_id']].add(one['action_id'])
        problems = list(self.mistakes)
        for share in self.shares.values():
            problems += _outcome('share', share, found.get(share.id), told)
            for snapshot in share.snapshots.values():
                problems += _outcome(
                    'snapshot', snapshot, snapshots.get(snapshot.id), told
                )
            if share.id in found:
                problems += _rules(
                    share,
                    {
                        one['id']: one
                        for one in user.get(
                            f'/share-access-rules?share_id={share.id}'
                        )['access_list']
                    },
                )
        self.forget(found, snapshots)
        return problems

    def forget(self, shares: dict, snapshots: dict) -> None:
        """Go on with what there is, as it is."""
        self.shares = {
            id: share for id, share in self.shares.items() if id in shares
        }
        for id, share in self.shares.items():
            share.may_go = share.goes = False
            share.wanted = shares[id]['size']
            share.sizes = {share.wanted}
            share.snapshots = {
                snapshot.id: snapshot
                for snapshot in share.snapshots.values()
                if snapshot.id in snapshots
            }


def _outcome(
    kind: str, thing: TrackedResource, row: dict | None, told: dict[str, set]
) -> list[str]:
    what = f'{kind} {thing.id}'
    if row is None:
        return [] if thing.may_go else [f'{what} is lost']
    if row['status'] in _WRONG:
        return (
            []
            if told[thing.id]
            else [f'{what} is {row["status"]} and nobody was told why']
        )
    if row['status'] != 'available':
        return [f'{what} is {row["status"]}']
    if thing.goes:
        return [f'{what} was to be deleted and is available']
    if kind == 'share' and row['size'] not in thing.sizes:
        return [f'{what} has {row["size"]} GiB of {thing.sizes}']
    if (
        kind == 'share'
        and thing.wanted not in (None, row['size'])
        and not told[thing.id]
    ):
        return [
            f'{what} has {row["size"]} GiB, {thing.wanted} were '
            'accepted, and nobody was told why'
        ]
    return []


def _rules(share: TrackedShare, rows: dict[str, dict]) -> list[str]:
    problems = []
    for rule in share.rules.values():
        row = rows.get(rule.id)
        if row is None:
            if not rule.may_go:
                problems.append(f'rule {rule.id} is lost')
        elif row['state'] not in ('active', 'error'):
            problems.append(f'rule {rule.id} is {row["state"]}')
        elif row['state'] == 'active' and rule.goes:
            problems.append(f'rule {rule.id} was denied and is active')
    return problems


def _is_refused(error: Exception) -> bool:
    reason = getattr(error.args[0], 'reason', None) if error.args else None
    return isinstance(reason, NewConnectionError)


class LoadClient:
    """One of those who ask; each has the shares that nobody else uses."""

    def __init__(self, load: Load, user: RestClient, rng: random.Random):
        self.load = load
        self.user = user
        self.rng = rng

    def ask(self) -> None:
        (verb,) = self.rng.choices([*WEIGHTS], [*WEIGHTS.values()])
        if verb == 'create':
            self._try(verb, self.create)
            return
        shares = list(self.load.shares.values())
        self.rng.shuffle(shares)
        for share in shares:
            if share.goes or not share.busy.acquire(blocking=False):
                continue
            try:
                if self._try(verb, getattr(self, verb), share):
                    return
            finally:
                share.busy.release()
        self._try('create', self.create)

    def _try(self, verb: str, ask: Callable, *args: typing.Any) -> bool:
        """Whether there was something to ask for."""
        try:
            code = ask(*args)
        except NO_RESPONSE_ERRORS as error:
            if _is_refused(error):
                self.load.not_asked()
            else:
                self.load.asked[verb] += 1
                self.load.unanswered += 1
            return True
        if code is None:
            return False
        self.load.asked[verb] += 1
        if code in (200, 202):
            self.load.accepted[verb] += 1
        elif code >= 500 and code != 503:
            self.load.mistakes.append(
                f'{verb} was answered with {code}: {self.user.last.text}'
            )
        return True

    def _send(self, method: str, path: str, body: object = None) -> int:
        with contextlib.suppress(AssertionError):  # other codes are fine
            self.user.request(method, path, body, timeout=10)
        return self.user.last.status_code

    def _act(self, path: str, action: str, args: object = None) -> int:
        return self._send('POST', f'{path}/action', {action: args})

    def _answer(self) -> typing.Any:
        return self.user.last.json()

    # Each gives the code of the answer, or None when it makes no sense now

    def create(self) -> int | None:
        size = self.rng.randint(1, 4)
        code = self._send(
            'POST', '/shares', {'share': {'share_proto': 'NFS', 'size': size}}
        )
        if code == 200:
            id = self._answer()['share']['id']
            self.load.shares[id] = TrackedShare(id, size)
        return code

    def delete(self, share: TrackedShare) -> int | None:
        if share.snapshots:
            return None
        share.may_go = True  # it may be accepted, and no answer come
        code = (
            self._act(f'/shares/{share.id}', 'force_delete')
            if (self.rng.random() < 0.2)
            else self._send('DELETE', f'/shares/{share.id}')
        )
        share.goes = code == 202
        return code

    def extend(self, share: TrackedShare) -> int | None:
        return self._resize(share, 'extend', +1)

    def shrink(self, share: TrackedShare) -> int | None:
        return self._resize(share, 'shrink', -1)

    def _resize(
        self, share: TrackedShare, verb: str, change: int
    ) -> int | None:
        size = (share.wanted or max(share.sizes)) + change
        if size < 1:
            return None
        share.sizes.add(size)
        before, share.wanted = share.wanted, None
        code = self._act(f'/shares/{share.id}', verb, {'new_size': size})
        # Refused, it wants what it wanted; without an answer, who knows.
        share.wanted = size if code == 202 else before
        return code

    def take_snapshot(self, share: TrackedShare) -> int | None:
        code = self._send(
            'POST', '/snapshots', {'snapshot': {'share_id': share.id}}
        )
        if code == 202:
            id = self._answer()['snapshot']['id']
            share.snapshots[id] = TrackedResource(id)
        return code

    def delete_snapshot(self, share: TrackedShare) -> int | None:
        snapshot = self._one_of(share.snapshots)
        if snapshot is None:
            return None
        snapshot.may_go = True
        code = self._send('DELETE', f'/snapshots/{snapshot.id}')
        snapshot.goes = snapshot.goes or code == 202
        return code

    def revert(self, share: TrackedShare) -> int | None:
        kept = [one for one in share.snapshots.values() if not one.may_go]
        if not kept:
            return None
        before, share.wanted = share.wanted, None
        code = self._act(
            f'/shares/{share.id}', 'revert', {'snapshot_id': kept[-1].id}
        )
        if code == 202:  # back to any size that it may have had
            share.sizes |= set(range(1, max(share.sizes) + 1))
        else:
            share.wanted = before
        return code

    def allow(self, share: TrackedShare) -> int | None:
        code = self._act(
            f'/shares/{share.id}',
            'allow_access',
            {
                'access_type': 'ip',
                'access_level': 'rw',
                'access_to': (
                    f'10.{".".join(map(str, self.rng.randbytes(3)))}'
                ),
            },
        )
        if code == 200:
            id = self._answer()['access']['id']
            share.rules[id] = TrackedResource(id)
        return code

    def deny(self, share: TrackedShare) -> int | None:
        rule = self._one_of(share.rules)
        if rule is None:
            return None
        rule.may_go = True
        code = self._act(
            f'/shares/{share.id}', 'deny_access', {'access_id': rule.id}
        )
        rule.goes = rule.goes or code == 202
        return code

    def _one_of(
        self, things: dict[str, TrackedResource]
    ) -> TrackedResource | None:
        kept = [one for one in things.values() if not one.goes]
        return self.rng.choice(kept) if kept else None
