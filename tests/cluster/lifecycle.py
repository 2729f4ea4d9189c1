"""Requests by which shares leave the service or its projects, and return.

They are moved to the recycle bin, unmanaged, or set to an error; clients of
snapshots are here as well.
"""

import typing
from typing import NamedTuple

import requests

from tests.cluster.acknowledged import NOTHING_DONE, is_done
from tests.support.load import LoadClient, TrackedResource, TrackedShare

if typing.TYPE_CHECKING:
    from tests.cluster.load import ClusterLoad

REPEATS = 3
"""How often at most a client sends a request."""

LONGEST_PAUSE = 5.0

UNKNOWN = 'did not confirm the change'
"""In answers to requests that may have been carried out."""


class Unmanaged(NamedTuple):
    """How a share is managed again."""

    host: str
    share_type: str
    sizes: frozenset[int]


class LifecycleClient(LoadClient):
    """Each verb returns a status code, or None if it is not applicable."""

    load: 'ClusterLoad'

    def may_use(self, share: TrackedShare) -> bool:
        return super().may_use(share) and share.id not in self.load.unusable

    def _send(self, method: str, path: str, body: object = None) -> int:
        """Send a request, again after 503 with Retry-After: nothing is done.

        Clients are told to do so, see upgrade.rst.
        """
        for _ in range(REPEATS):
            try:
                code = super()._send(method, path, body)
            except requests.exceptions.ChunkedEncodingError:
                self.load.incomplete += 1
                raise
            if not self._is_undone(code):
                break
            pause = float(self.user.last.headers['Retry-After'])
            if self.load.is_stopped_within(min(pause, LONGEST_PAUSE)):
                break
            self.load.repeated += 1
        return code

    def _is_undone(self, code: int) -> bool:
        """Whether nothing has been done, and the request may be repeated."""
        return self._may_be_repeated(code) and (UNKNOWN not in self.user.last.text)

    def _create(self, path: str, wrapper: str, body: dict, field: str = 'name') -> int:
        """Create something with a name of its own, in a field."""
        name = self.load.creations.new_name()
        return self._create_as(name, path, {wrapper: {field: name} | body}, wrapper)

    def _create_as(self, name: str, path: str, body: dict, wrapper: str) -> int:
        """Create what has a name in the body, and is in a wrapper if shown."""
        code = self._send('POST', path, body)
        if is_done(code):
            id = self._answer()[wrapper]['id']
            self.load.creations.created(name, id)
        elif self._has_created_nothing(code):
            self.load.creations.refused(name)
        return code

    def _has_created_nothing(self, code: int) -> bool:
        # The node of Galera that is read may lag, see databases.rst.
        return code != 404 and (code in NOTHING_DONE or self._is_undone(code))

    def _change(
        self,
        id: str,
        name: str,
        value: object,
        method: str,
        path: str,
        body: object = None,
    ) -> int:
        """Request another value of a property of a resource."""
        code = None
        try:
            code = self._send(method, path, body)
        finally:
            self.load.values.note(id, name, value, code)
        return code

    def _row(self, path: str, name: str) -> typing.Any:
        """Return what is shown at a path, or None without an answer."""
        return self._answer()[name] if self._send('GET', path) == 200 else None

    # Clients of shares and snapshots

    def allow(self, share: TrackedShare) -> int:
        return self._allow(
            f'/shares/{share.id}', 'access', share.rules, access_level='rw'
        )

    def _allow(
        self, path: str, wrapper: str, rules: dict[str, TrackedResource], **more: str
    ) -> int:
        address = self.load.creations.new_address()
        rule = {'access_type': 'ip', 'access_to': address, **more}
        code = self._create_as(
            address, f'{path}/action', {'allow_access': rule}, wrapper
        )
        if is_done(code):
            id = self._answer()[wrapper]['id']
            rules[id] = TrackedResource(id)
        return code

    def allow_snapshot(self, share: TrackedShare) -> int | None:
        snapshot = self._one_of(share.snapshots)
        if snapshot is None:
            return None
        self.load.snapshots_with_clients.add(snapshot.id)
        return self._allow(
            f'/snapshots/{snapshot.id}', 'snapshot_access', snapshot.rules
        )

    def deny_snapshot(self, share: TrackedShare) -> int | None:
        rules = {
            id: (snapshot, rule)
            for snapshot in share.snapshots.values()
            for id, rule in snapshot.rules.items()
            if not rule.delete_accepted
        }
        if not rules:
            return None
        snapshot, rule = self.rng.choice([*rules.values()])
        rule.delete_requested = True
        code = self._act(
            f'/snapshots/{snapshot.id}', 'deny_access', {'access_id': rule.id}
        )
        rule.delete_accepted = rule.delete_accepted or code == 202
        return code

    # The recycle bin

    def soft_delete(self, share: TrackedShare) -> int:
        return self._move_to_bin(share, 'soft_delete', True)

    def restore(self, share: TrackedShare) -> int | None:
        if self.load.in_bin.get(share.id, False) is False:
            return None
        return self._move_to_bin(share, 'restore', False)

    def _move_to_bin(self, share: TrackedShare, action: str, wanted: bool) -> int:
        in_bin = self.load.in_bin
        before, in_bin[share.id] = in_bin.get(share.id, False), None
        code = self._act(f'/shares/{share.id}', action)
        if code in (200, 202) and before is not None:
            # Otherwise one without an answer may still come after it.
            in_bin[share.id] = wanted
        elif 400 <= code < 500:
            in_bin[share.id] = before
        return code

    # Shares that the service does not manage

    def unmanage(self, share: TrackedShare) -> int | None:
        path = f'/shares/{share.id}'
        row = self._row(path, 'share')
        locations = self._row(f'{path}/export_locations', 'export_locations')
        if share.snapshots or not row or not locations:
            return None
        share.delete_requested = True
        code = self._act(path, 'unmanage')
        share.delete_accepted = code == 202
        if code == 202:
            self.load.unmanaged[locations[0]['path']] = Unmanaged(
                row['host'],
                row['share_type_name'],
                frozenset({row['size'], *share.sizes}),
            )
        return code

    def manage(self, share: TrackedShare) -> int | None:
        try:
            path, found = self.load.unmanaged.popitem()
        except KeyError:
            return None
        code = self._create(
            '/shares/manage',
            'share',
            {
                'protocol': 'NFS',
                'export_path': path,
                'service_host': found.host,
                'share_type': found.share_type,
            },
        )
        if code == 200:
            id = self._answer()['share']['id']
            managed = TrackedShare(id, max(found.sizes))
            managed.sizes, managed.wanted = set(found.sizes), None
            self.load.shares[id] = managed
        elif 400 <= code < 500:  # it is managed still
            self.load.unmanaged[path] = found
        return code

    # Statuses

    def reset_to_error(self, share: TrackedShare) -> int | None:
        return self._reset(share, 'available', 'error')

    def reset_to_available(self, share: TrackedShare) -> int | None:
        if share.id not in self.load.reset:
            return None
        return self._reset(share, 'error', 'available')

    def _reset(self, share: TrackedShare, before: str, after: str) -> int | None:
        """Reset what is at rest: nothing else would be true of it."""
        path = f'/shares/{share.id}'
        row = self._row(path, 'share')
        if row is None or row['status'] != before or row['has_replicas']:
            return None
        self.load.reset.add(share.id)
        # Without an answer it may come after all that would follow.
        self.load.unusable.add(share.id)
        code = self._act(path, 'reset_status', {'status': after})
        if code < 500:
            self.load.unusable.discard(share.id)
        return code
