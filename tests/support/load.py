"""A load generator that checks the outcome of every accepted request.

`Load` requests changes of shares, snapshots and access rules at a steady
rate, answered or not. An accepted request must have succeeded or have failed
visibly; one without a response may have done either, or may not have been
accepted at all.
"""

import collections
from collections.abc import Callable, Mapping, Set
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

# Relative frequency of each request.
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
_ERROR_STATUSES = (
    'error',
    'extending_error',
    'shrinking_error',
    'reverting_error',
    'backup_restoring_error',
    'error_deleting',
    'manage_error',
    'unmanage_error',
)


class TrackedResource:
    """A share, snapshot or rule that was requested, by its id.

    `sizes` are the sizes it may have; `wanted` is the one accepted last, or
    None if unknown. Its deletion may be requested, and then accepted.
    """

    def __init__(self, id: str, size: int = 0):
        self.id = id
        self.sizes = {size}
        self.wanted: int | None = size
        self.delete_requested = self.delete_accepted = False


class TrackedSnapshot(TrackedResource):
    def __init__(self, id: str):
        super().__init__(id)
        self.rules: dict[str, TrackedResource] = {}


class TrackedShare(TrackedResource):
    def __init__(self, id: str, size: int):
        super().__init__(id, size)
        self.snapshots: dict[str, TrackedSnapshot] = {}
        self.rules: dict[str, TrackedResource] = {}
        self.busy = threading.Lock()


class Load:
    """Sends `per_minute` requests from several clients until `stop`.

    `query` is what lists need to have everything, `idle` the statuses in
    which a resource without an error may stay.
    """

    query = ''
    idle = frozenset({'available'})

    def __init__(
        self,
        rest: Callable[[], RestClient],
        seed: int,
        per_minute: int = 200,
        clients: int = CLIENTS,
        weights: Mapping[str, int] = WEIGHTS,
    ):
        self._rest = rest
        self._number = clients
        self.weights = weights
        self._interval = 60 / per_minute
        self._seed = seed
        self._stop = threading.Event()
        self._schedule_lock = threading.Lock()
        self._next_at = time.monotonic()
        self.shares: dict[str, TrackedShare] = {}
        self.requested: collections.Counter[str] = collections.Counter()
        self.accepted: collections.Counter[str] = collections.Counter()
        self.unanswered = 0
        self.server_errors: list[str] = []
        self._pool = futures.ThreadPoolExecutor(clients)
        self._clients: list[futures.Future] = []

    def start(self) -> None:
        self._stop.clear()
        self._next_at = time.monotonic()
        self._clients = [
            self._pool.submit(self._run_client, number)
            for number in range(self._number)
        ]

    def stop(self) -> None:
        """Stop sending; raise any unexpected error of a client."""
        self._stop.set()
        for client in self._clients:
            client.result()

    # Requests

    def _run_client(self, number: int) -> None:
        client = self.new_client(self._rest(), random.Random(f'{self._seed} {number}'))
        while not self._stop.wait(self._reserve_slot()):
            client.send_request()

    def new_client(self, user: RestClient, rng: random.Random) -> 'LoadClient':
        return LoadClient(self, user, rng)

    def _reserve_slot(self) -> float:
        """Return the seconds until the caller may send its request."""
        with self._schedule_lock:
            now = time.monotonic()
            # Requests that were late are made up for.
            self._next_at += self._interval
            return max(0.0, self._next_at - now)

    def release_slot(self) -> None:
        """Give the slot back, a bit later: no server was listening."""
        with self._schedule_lock:
            self._next_at -= self._interval
        self._stop.wait(0.1)

    # Outcomes

    def check(self, user: RestClient) -> list[str]:
        """Return the wrong outcomes; only valid when no work is pending."""
        found = self.list_shares(user)
        snapshots = {
            one['id']: one
            for one in user.get(f'/snapshots/detail{self.query}')['snapshots']
        }
        messages = self.messages(user)
        problems = list(self.server_errors)
        for share in self.shares.values():
            problems += self.outcome_of(share, found.get(share.id), messages)
            for snapshot in share.snapshots.values():
                problems += outcome(
                    'snapshot',
                    snapshot,
                    snapshots.get(snapshot.id),
                    messages,
                    self.idle,
                )
            if share.id in found:
                problems += self.outcome_of_share_rules(
                    share,
                    {
                        one['id']: one
                        for one in user.get(f'/share-access-rules?share_id={share.id}')[
                            'access_list'
                        ]
                    },
                )
        self.forget(found, snapshots)
        return problems

    def list_shares(self, user: RestClient) -> dict[str, dict]:
        """Return all shares by their ids."""
        return {
            one['id']: one for one in user.get(f'/shares/detail{self.query}')['shares']
        }

    def outcome_of(
        self, share: TrackedShare, row: dict | None, messages: Mapping[str, set]
    ) -> list[str]:
        """Return what is wrong about a share."""
        return outcome('share', share, row, messages, self.idle)

    def outcome_of_share_rules(
        self, share: TrackedShare, rows: Mapping[str, dict]
    ) -> list[str]:
        """Return what is wrong about the access rules of a share."""
        return outcome_of_rules(share.rules, rows)

    @staticmethod
    def messages(user: RestClient) -> dict[str, set]:
        """Return the actions that messages are about, by resource."""
        messages = collections.defaultdict(set)
        for one in user.get('/messages')['messages']:
            messages[one['resource_id']].add(one['action_id'])
        return messages

    def forget(self, shares: dict, snapshots: dict) -> None:
        """Continue with the resources that exist, as they are."""
        self.shares = {id: share for id, share in self.shares.items() if id in shares}
        for id, share in self.shares.items():
            share.delete_requested = share.delete_accepted = False
            share.wanted = shares[id]['size']
            share.sizes = {share.wanted}
            share.snapshots = {
                snapshot.id: snapshot
                for snapshot in share.snapshots.values()
                if snapshot.id in snapshots
            }


def outcome(
    kind: str,
    resource: TrackedResource,
    row: dict | None,
    messages: Mapping[str, set],
    idle: Set[str],
) -> list[str]:
    """Return what is wrong about a resource, of which the API has `row`."""
    what = f'{kind} {resource.id}'
    if row is None:
        return [] if resource.delete_requested else [f'{what} is lost']
    if row['status'] in _ERROR_STATUSES:
        return (
            []
            if messages[resource.id]
            else [f'{what} is {row["status"]} without a user message']
        )
    if row['status'] not in idle:
        return [f'{what} is {row["status"]}']
    if resource.delete_accepted:
        return [f'{what} was to be deleted and is {row["status"]}']
    if kind == 'share' and row['size'] not in resource.sizes:
        return [f'{what} has {row["size"]} GiB of {resource.sizes}']
    if (
        kind == 'share'
        and resource.wanted not in (None, row['size'])
        and not messages[resource.id]
    ):
        return [
            f'{what} has {row["size"]} GiB, {resource.wanted} were '
            'accepted, without a user message'
        ]
    return []


def outcome_of_rules(
    rules: Mapping[str, TrackedResource], rows: Mapping[str, dict]
) -> list[str]:
    """Return what is wrong about access rules, of which the API has rows."""
    problems = []
    for rule in rules.values():
        row = rows.get(rule.id)
        if row is None:
            if not rule.delete_requested:
                problems.append(f'rule {rule.id} is lost')
        elif row['state'] not in ('active', 'error'):
            problems.append(f'rule {rule.id} is {row["state"]}')
        elif row['state'] == 'active' and rule.delete_accepted:
            problems.append(f'rule {rule.id} was denied and is active')
    return problems


def _is_refused(error: Exception) -> bool:
    reason = getattr(error.args[0], 'reason', None) if error.args else None
    return isinstance(reason, NewConnectionError)


class LoadClient:
    """One client; it uses shares that no other client uses meanwhile."""

    def __init__(self, load: Load, user: RestClient, rng: random.Random):
        self.load = load
        self.user = user
        self.rng = rng

    def send_request(self) -> None:
        weights = self.load.weights
        (verb,) = self.rng.choices([*weights], [*weights.values()])
        if verb == 'create':
            self._attempt(verb, self.create)
            return
        shares = list(self.load.shares.values())
        self.rng.shuffle(shares)
        for share in shares:
            if not self.may_use(share) or not (share.busy.acquire(blocking=False)):
                continue
            try:
                if self._attempt(verb, getattr(self, verb), share):
                    return
            finally:
                share.busy.release()
        self._attempt('create', self.create)

    def may_use(self, share: TrackedShare) -> bool:
        """Whether requests about a share may be sent."""
        return not share.delete_accepted

    def _attempt(self, verb: str, send_request: Callable, *args: typing.Any) -> bool:
        """Send a request; return whether there was one to send."""
        try:
            code = send_request(*args)
        except NO_RESPONSE_ERRORS as error:
            if _is_refused(error):
                self.load.release_slot()
            else:
                self.load.requested[verb] += 1
                self.load.unanswered += 1
            return True
        if code is None:
            return False
        self.load.requested[verb] += 1
        if code in (200, 202, 204):
            self.load.accepted[verb] += 1
        elif self._is_of_proxy(code):
            self.load.unanswered += 1
        elif code >= 500 and not self._may_be_repeated(code):
            self.load.server_errors.append(
                f'{verb} was answered with {code}: {self.user.last.text}'
            )
        return True

    def _is_of_proxy(self, code: int) -> bool:
        """Whether a proxy says that the API has ended without an answer."""
        return (
            code in (502, 504)
            and 'x-openstack-request-id' not in self.user.last.headers
        )

    def _may_be_repeated(self, code: int) -> bool:
        return code == 503 and 'Retry-After' in self.user.last.headers

    def _send(self, method: str, path: str, body: object = None) -> int:
        # Any status code is fine.
        with contextlib.suppress(AssertionError):
            self.user.request(method, path, body, timeout=10)
        return self.user.last.status_code

    def _act(self, path: str, action: str, args: object = None) -> int:
        return self._send('POST', f'{path}/action', {action: args})

    def _answer(self) -> typing.Any:
        return self.user.last.json()

    # Each returns the status code, or None if it is not applicable now

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
        share.delete_requested = True  # it may be accepted without a response
        code = (
            self._act(f'/shares/{share.id}', 'force_delete')
            if (self.rng.random() < 0.2)
            else self._send('DELETE', f'/shares/{share.id}')
        )
        share.delete_accepted = code == 202
        return code

    def extend(self, share: TrackedShare) -> int | None:
        return self._resize(share, 'extend', +1)

    def shrink(self, share: TrackedShare) -> int | None:
        return self._resize(share, 'shrink', -1)

    def _resize(self, share: TrackedShare, verb: str, change: int) -> int | None:
        size = (share.wanted or max(share.sizes)) + change
        if size < 1:
            return None
        share.sizes.add(size)
        before, share.wanted = share.wanted, None
        code = self._act(f'/shares/{share.id}', verb, {'new_size': size})
        # Unchanged if refused; unknown without a response, or if the answer
        # to the commit was lost.
        if code < 500:
            share.wanted = size if code == 202 else before
        return code

    def take_snapshot(self, share: TrackedShare) -> int | None:
        code = self._send('POST', '/snapshots', {'snapshot': {'share_id': share.id}})
        if code == 202:
            id = self._answer()['snapshot']['id']
            share.snapshots[id] = TrackedSnapshot(id)
        return code

    def delete_snapshot(self, share: TrackedShare) -> int | None:
        snapshot = self._one_of(share.snapshots)
        if snapshot is None:
            return None
        snapshot.delete_requested = True
        code = self._send('DELETE', f'/snapshots/{snapshot.id}')
        snapshot.delete_accepted = snapshot.delete_accepted or code == 202
        return code

    def revert(self, share: TrackedShare) -> int | None:
        candidates = [
            one for one in share.snapshots.values() if not one.delete_requested
        ]
        if not candidates:
            return None
        before, share.wanted = share.wanted, None
        code = self._act(
            f'/shares/{share.id}', 'revert', {'snapshot_id': candidates[-1].id}
        )
        if code == 202 or code >= 500:  # back to any size it may have had
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
                'access_to': (f'10.{".".join(map(str, self.rng.randbytes(3)))}'),
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
        rule.delete_requested = True
        code = self._act(f'/shares/{share.id}', 'deny_access', {'access_id': rule.id})
        rule.delete_accepted = rule.delete_accepted or code == 202
        return code

    def _one_of(self, resources: dict[str, TrackedResource]) -> TrackedResource | None:
        candidates = [one for one in resources.values() if not one.delete_accepted]
        return self.rng.choice(candidates) if candidates else None
