"""NFS exports of the CephFS driver, which gateways serve.

A gateway is a process on any machine, see `gateway`. It exports what the records
say, all gateways the same shares to the same clients. Each has a Ceph user of its own
for each share, which may use nothing else: one gateway can be cut off from one share
while the others continue.

    export:SUBVOLUME   in the records: its number, path and clients, and the keys of
                       the users of gateways; None for one that is being cut off
    exports            the numbers of the last change, and of the last new export
    fence:NAME         the last generation of sessions of a gateway that is evicted
    gateway:NAME       in an object of the gateways: what each has applied, and the
                       generation of its sessions

A change waits until the gateways have applied it. One that may still serve a client
that loses access is cut off by its user instead; it is let in again when it answers.

The sessions of a gateway that has died hold files and locks. They are all evicted by
one command, whatever the number of shares: each eviction waits for a new OSD map, of
which the monitors make one a second. A gateway that was only paused begins a new
generation of sessions. So an eviction that comes late never hits those.
"""

from collections.abc import Iterable, Mapping, Sequence
import json
import re
import time
from typing import Any

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import base, ganesha
from manila_lite.share.drivers.cephfs.backend import (
    MISSING,
    CephfsBackend,
    State,
    require,
)
from manila_lite.share.drivers.cephfs.cluster import GATEWAYS, Cluster, CommandFailed
from manila_lite.share.drivers.cephfs.records import SHARE, Record, Values
from manila_lite.share.drivers.cephfs.users import INTERNAL, revoke, revoke_all
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.nfs_clients import Client, clients_of

LOG = log.getLogger(__name__)

EXPORT, CHANGES, FENCE, GATEWAY = 'export:', 'exports', 'fence:', 'gateway:'
SILENT_SECONDS = 6.0
"""A gateway that has published nothing for this time is taken for dead."""

APPLY_SECONDS = 15.0
"""The limit of waiting for a gateway that is alive to apply a change."""

_SERVING = f'{INTERNAL}nfs-'
_INTERVAL = 0.03
_WATCH_SECONDS = 3.0
_HIGHEST = 65535
NO_CHANGE = {'version': 0, 'last': 0}


def gateway_name(address: str) -> str:
    """Return the name of a gateway, which has no colon."""
    return re.sub(r'[^0-9A-Za-z.]', '-', address)


def user_of(gateway: str, subvolume: str) -> str:
    """Return the Ceph user by which a gateway serves a share."""
    return f'{_SERVING}{gateway}-{subvolume}'


def sessions_of(records: str, gateway: str, generation: int) -> str:
    """Return the metadata that the sessions of a generation have, and no others."""
    name = f'{records}-{gateway}'.encode().hex()  # no character needs quoting
    return f'manila_lite_gateway={name}.{generation}'


class Gateways:
    """The states that gateways publish, and which gateways are alive."""

    def __init__(self, cluster: Cluster, addresses: Iterable[str]):
        self.names = sorted(map(gateway_name, addresses))
        self._cluster = cluster
        self._seen: dict[str, tuple[str, float]] = {}

    def states(self, name: str) -> dict[str, Record]:
        """Return what the gateways of a back end have published."""
        keys = [GATEWAY + gateway for gateway in self.names]
        found = self._cluster.read(name, keys, GATEWAYS) if keys else {}
        return {
            gateway: json.loads(found[key])
            for gateway, key in zip(self.names, keys, strict=True)
            if key in found
        }

    def alive(self, name: str) -> dict[str, Record]:
        """Return the states of the gateways of a back end that are alive."""
        return self.alive_and_silent(name)[0]

    def alive_and_silent(
        self, name: str
    ) -> tuple[dict[str, Record], dict[str, Record]]:
        """Return the states of gateways that are alive, and of those that are not."""
        alive: dict[str, Record] = {}
        silent: dict[str, Record] = {}
        now = time.monotonic()
        for gateway, state in self.states(name).items():
            beat, since = self._seen.get(gateway, ('', now))
            if beat != state['beat']:
                since = now
                self._seen[gateway] = state['beat'], now
            (alive if now - since < SILENT_SECONDS else silent)[gateway] = state
        return alive, silent


class CephfsExports:
    """The exports of one back end, and the gateways that serve them."""

    def __init__(self, backend: CephfsBackend):
        self._backend = backend
        self._gateways = Gateways(
            backend.cluster, backend.configuration.cephfs_nfs_gateways
        )
        self._fenced: dict[str, str] = {}
        self._complete: object = None  # for which version and gateways `watch` is done

    def update_access(
        self, share: base.ShareForDriver, record: Record, rules: RuleChanges
    ) -> base.AccessReplies:
        """Export a share to exactly these clients; without any, end its export."""
        clients, replies = clients_of(rules.access_rules, refusal=ganesha.refusal)
        if clients:
            self._publish(share, record, clients, rules)
        else:
            self.withdraw(record['subvolume'])
        return replies

    def _publish(
        self,
        share: base.ShareForDriver,
        record: Record,
        clients: Sequence[Client],
        rules: RuleChanges,
    ) -> None:
        subvolume = record['subvolume']
        users = (self._find(subvolume) or {'users': {}})['users']
        # Rotated keys are found when all shares are ensured.
        keys = {
            gateway: self._authorize(gateway, subvolume)
            for gateway in self._alive()
            if rules.is_resync or gateway not in users
        }
        export = self._write(share['id'], share['name'], record, clients, keys)
        silent = self._await(subvolume, export)
        if rules.is_revoking and silent:
            self._cut_off(subvolume, silent)
        if rules.add_rules and not export['users'].keys() - silent:
            raise exception.FileServerUnresponsive(server='NFS')

    def _authorize(self, gateway: str, subvolume: str) -> str:
        """Authorize the user of a gateway for a share, and return its key."""
        return self._backend.order(
            'subvolume authorize',
            sub_name=subvolume,
            auth_id=user_of(gateway, subvolume),
            access_level='rw',
            tenant_id=INTERNAL,
        ).strip()

    def clients_of(self, subvolume: str) -> list[Any]:
        """Return the clients that a share is exported to."""
        return (self._find(subvolume) or {'clients': []})['clients']

    def restore(self, name: str, record: Record, clients: Sequence[Any]) -> None:
        """Export a share again to clients that it was exported to before."""
        if not clients:
            return
        subvolume = record['subvolume']
        keys = {one: self._authorize(one, subvolume) for one in self._alive()}
        export = self._write(name, name, record, clients, keys)
        self._await(subvolume, export)

    def _write(
        self,
        share_id: str,
        name: str,
        record: Record,
        clients: Sequence[Any],
        keys: Mapping[str, str],
    ) -> Record:
        """Write an export, and return it."""
        key, share_key = EXPORT + record['subvolume'], SHARE + name
        used = {one['number'] for one in self._all().values()}

        def decide(values: Values) -> Values:
            state = require(share_id, values[share_key])['state']
            if state not in (State.AVAILABLE, State.REVERTING):
                raise exception.ShareResourceNotFound(share_id=share_id)
            changes = values[CHANGES] or NO_CHANGE
            present = values[key] or {'number': _free(changes['last'], used)}
            users = present.get('users', {})
            new = present | {
                'path': record['path'],
                'clients': [list(client) for client in clients],
                # A gateway that is being cut off is let in by `watch`.
                'users': users
                | {name: user for name, user in keys.items() if users.get(name, user)},
            }
            return _changed(key, values, new)

        return self._backend.records.change(key, share_key, CHANGES, decide=decide)[key]

    def _await(self, subvolume: str, export: Record) -> set[str]:
        """Wait until gateways apply an export; return those that may serve the old."""
        waiting, waited = set(export['users']), 0.0
        while waiting:
            alive = self._alive()
            waiting -= {
                name
                for name in waiting & alive.keys()
                if alive[name]['version'] >= export['version']
                and subvolume not in alive[name]['failed']
            }
            if not waiting & alive.keys() or waited >= APPLY_SECONDS:
                break
            self._backend.sleep(_INTERVAL)
            waited += _INTERVAL
        return waiting

    def _alive(self) -> dict[str, Record]:
        return self._gateways.alive(self._backend.records.name)

    def _find(self, subvolume: str) -> Record | None:
        return self._backend.records.get(EXPORT + subvolume)

    def _all(self) -> dict[str, Record]:
        return self._backend.records.get_all(EXPORT)

    def withdraw(self, subvolume: str) -> None:
        """End an export, also for open files.

        Its record stays until all gateways are cut off: a call that is repeated
        completes what an earlier one has begun.
        """

        def close(values: Values) -> Values:
            present = values[key]
            if present is None:
                return {}
            users = dict.fromkeys(present['users'])
            return _changed(key, values, present | {'clients': [], 'users': users})

        key = EXPORT + subvolume
        export = self._backend.records.change(key, CHANGES, decide=close)[key]
        if export is not None:
            self._await(subvolume, export)
            self._revoke(subvolume, export['users'])
        revoke_all(self._backend, subvolume, _SERVING)
        self._backend.records.change(
            key, CHANGES, decide=lambda values: _changed(key, values, None)
        )

    def _cut_off(self, subvolume: str, gateways: Iterable[str]) -> None:
        """Let gateways no longer use a share, whatever they do.

        Each is marked first, so that another call cuts it off if this one ends early.
        """
        key, gateways = EXPORT + subvolume, sorted(gateways)

        def change(values: Values, users: Record) -> Values:
            present = values[key]
            if present is None:
                return {}
            others = {
                name: user
                for name, user in present['users'].items()
                if name not in gateways
            }
            return _changed(key, values, present | {'users': others | users})

        LOG.warning('NFS gateways %s are cut off from %s', gateways, subvolume)
        records = self._backend.records
        marks = dict.fromkeys(gateways)
        records.change(key, CHANGES, decide=lambda values: change(values, marks))
        self._revoke(subvolume, gateways)
        # This includes one that was let in meanwhile: its key is no longer valid.
        records.change(key, CHANGES, decide=lambda values: change(values, {}))

    def _revoke(self, subvolume: str, gateways: Iterable[str]) -> None:
        """Cut gateways off; a subvolume that is gone is success."""
        try:
            for gateway in gateways:
                revoke(self._backend, subvolume, user_of(gateway, subvolume))
        except CommandFailed as error:
            if error.errno != MISSING:
                raise

    def watch(self) -> None:
        """Evict gateways that have died, so that others need not wait for them.

        Those that have begun to answer are let in to all shares.
        """
        if not self._gateways.names:
            return
        alive, silent = self._gateways.alive_and_silent(self._backend.records.name)
        for name, state in silent.items():
            self._fence(name, state.get('generation', 0), state['beat'])
        for name, state in alive.items():
            if ended := state.get('ended'):
                self._fence(name, ended, f'{ended}')
        version = self._find_version()
        found = version, sorted(alive)
        if self._complete == found:
            return
        deadline = time.monotonic() + _WATCH_SECONDS
        for subvolume, export in sorted(self._all().items()):
            if time.monotonic() > deadline:
                return  # the rest is done by the next call
            if export['clients']:
                self._complete_export(subvolume, export, alive)
        if version == self._find_version():
            self._complete = found

    def _fence(self, gateway: str, generation: int, life: str) -> None:
        """Evict the sessions of a gateway, and let it know that it needs new ones.

        Of all generations that were not evicted before; of the last one in any case,
        as another share service may have been killed before it did so.
        """
        if self._fenced.get(gateway) == life:
            return
        key, records = FENCE + gateway, self._backend.records
        fence = records.get(key) or 0

        def raise_fence(values: Values) -> Values:
            return {key: max(generation, values[key] or 0)}

        LOG.warning('Sessions that NFS gateway %s has left are evicted', gateway)
        records.change(key, decide=raise_fence)
        for each in range(min(fence + 1, generation), generation + 1):
            self._backend.evict(sessions_of(records.name, gateway, each))
        self._fenced[gateway] = life

    def _find_version(self) -> int:
        return (self._backend.records.get(CHANGES) or NO_CHANGE)['version']

    def _complete_export(
        self, subvolume: str, export: Record, alive: Mapping[str, Record]
    ) -> None:
        """Let in the gateways that are alive, and cut off those that were removed."""
        users, known = export['users'], self._gateways.names
        lost = {name for name, key in users.items() if not key or name not in known}
        new = alive.keys() - users.keys()
        try:
            if lost:
                self._cut_off(subvolume, lost)
            if new:
                keys = {name: self._authorize(name, subvolume) for name in new}
                self._let_in(subvolume, keys)
        except CommandFailed as error:
            # A share that was removed does not hold up the others.
            LOG.error('%s is not exported everywhere: %s', subvolume, error)

    def _let_in(self, subvolume: str, keys: Mapping[str, str]) -> None:
        key = EXPORT + subvolume

        def decide(values: Values) -> Values:
            present = values[key]
            if present is None or not present['clients']:
                return {}
            return _changed(
                key, values, present | {'users': {**keys, **present['users']}}
            )

        self._backend.records.change(key, CHANGES, decide=decide)


def _changed(key: str, values: Values, new: Record | None) -> dict[str, Any]:
    """Return what a change of an export sets, with the number of the change."""
    changes, present = values[CHANGES] or NO_CHANGE, values[key]
    if new == present:
        return {}
    version = changes['version'] + 1
    last = changes['last']
    if new is not None:
        new = new | {'version': version}
        last = last if present else new['number']
    return {key: new, CHANGES: {'version': version, 'last': last}}


def _free(last: int, used: set[int]) -> int:
    """Return a number that no export has, the one that was free the longest.

    A client may still have a handle with the number of an export that has ended.
    """
    if len(used) >= _HIGHEST:
        raise exception.ShareBackendException(msg='no export number is free')
    number = last % _HIGHEST + 1
    while number in used:
        number = number % _HIGHEST + 1
    return number
