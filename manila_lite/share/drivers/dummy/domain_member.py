"""The dummy back ends that hold replicas of each other's shares.

They find each other in the directory of their replication domain, whether
they belong to one share service or to several.
"""

import hashlib
import pathlib
from typing import Any

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers import records
from manila_lite.share.drivers.dummy.instrumentation import InstrumentedDriver
from manila_lite.share.drivers.dummy.replication_domain import ACTIVE
from manila_lite.share.drivers.dummy.replication_domain import WRITABLE
from manila_lite.share.drivers.dummy.replication_domain import ReplicaSet
from manila_lite.share.drivers.dummy.replication_domain import (
    ReplicationDomain,
)
from manila_lite.share.drivers.dummy.replication_domain import describe_replica
from manila_lite.share.drivers.dummy.replication_domain import is_synced
from manila_lite.share.drivers.dummy.state import DummyState

_OF_REPLICAS = frozenset({'replica_of', 'version', 'epoch', 'updates_left'})
# What of a record follows from one replica to the other.
_FOLLOWING = ('size', 'content', 'used_gb', 'version')


class DummyDomainMember(InstrumentedDriver):
    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        option = self.configuration
        self._style = option.dummy_driver_replication_type
        self._domain: ReplicationDomain | None = None
        if self._style:
            word = self.replication_domain or ''
            self._domain = ReplicationDomain(
                pathlib.Path(option.dummy_driver_replication_path).absolute()
                / hashlib.sha256(word.encode()).hexdigest()
            )
            # Also orders what is done to replicas from other back ends.
            self._lock = self._domain.lock

    # What tests do

    def make_unreachable(self) -> None:
        """Lose the site: nobody reaches the back end until it is back."""
        self._state.make_unreachable()

    def make_reachable(self) -> None:
        """Have it as it was when it went away."""
        self._state.make_reachable()

    def _change_content(
        self, share_id: str, content: str, used_gb: float
    ) -> None:
        """What users of a share do, if they may."""
        if self._state.is_unreachable():
            raise exception.ShareBackendException(
                msg=f'share {share_id} is out of reach'
            )
        record = self._current(share_id)
        if self._role(share_id, record) != ACTIVE:
            raise exception.ShareBackendException(
                msg=f'share {share_id} is no active replica'
            )
        self._put(
            share_id,
            record
            | {'content': content, 'used_gb': used_gb, **self._next(record)},
        )

    # Who belongs together

    def _settle(self) -> None:
        """Let the others of the domain find what is here."""
        if self._domain is not None:
            with self._lock:
                self._domain.settle(self._state, self._style)

    def _replicating(self) -> ReplicationDomain:
        """The domain, of a back end that replicates."""
        if self._domain is None:
            raise NotImplementedError
        return self._domain

    def _membership(self, share: base.ShareForDriver) -> records.Record:
        """What the record of a share says that has replicas, or may have.

        Such a share is made known to the others.
        """
        if self._domain is None or share['replica_state'] is None:
            return {}
        relation = self._join(
            share['share_id'], share['id'], share['replica_state'] == ACTIVE
        )
        return {
            'replica_of': share['share_id'],
            'version': 0,
            'epoch': relation.epoch,
        }

    def _join(
        self, share_id: str, replica_id: str, active: bool
    ) -> ReplicaSet:
        domain = self._replicating()
        relation = domain.find(share_id) or ReplicaSet(active=None)
        if replica_id not in relation.members:
            relation = relation._replace(
                members=[*relation.members, replica_id]
            )
        if (
            active
            and self._style != WRITABLE
            and relation.active is None
            and relation.previous in (None, replica_id)
        ):
            # A promotion that came to nothing is taken back: nobody could
            # write since.
            relation = relation._replace(active=replica_id, previous=None)
        domain.put(share_id, relation)
        return relation

    def _alone(self, record: records.Record) -> records.Record:
        """What is left of a replica when nobody knows of it any more."""
        return {
            name: value
            for name, value in record.items()
            if name not in _OF_REPLICAS
        }

    def _leave(self, share: base.ShareForDriver) -> None:
        if self._domain is not None:
            self._domain.leave(share['share_id'], share['id'])

    def _gathered(
        self,
        replica_list: list[base.ShareForDriver],
        replica: base.ShareForDriver,
    ) -> ReplicaSet:
        """The relation of a replica; those that are active are in it.

        They have not been told that they are replicas when they were made
        as shares, or found.
        """
        domain = self._replicating()
        for one in replica_list:
            if one['replica_state'] != ACTIVE:
                continue
            self._join(one['share_id'], one['id'], True)
            home = domain.find_state_of(one['id'])
            record = home.shares.find(one['id']) if home else None
            if home and record and 'replica_of' not in record:
                home.shares.put(
                    one['id'],
                    record
                    | {
                        'replica_of': one['share_id'],
                        'version': 0,
                        'epoch': 0,
                    },
                )
        return self._join(replica['share_id'], replica['id'], False)

    def _role(self, share_id: str, record: records.Record) -> str:
        if self._domain is None or 'replica_of' not in record:
            return ACTIVE
        return describe_replica(
            self._domain.find(record['replica_of']),
            share_id,
            record,
            self._style,
        ).role

    # What follows from what

    def _source_of(
        self, relation: ReplicaSet
    ) -> tuple[DummyState, str] | None:
        """The replica with the content that counts, when it is in reach."""
        if self._style == WRITABLE:
            return self._latest(relation)
        leading = relation.active or relation.previous
        home = leading and self._replicating().find_state_of(leading)
        if not home or not leading or _unfit(home, leading):
            return None
        return home, leading

    def _latest(self, relation: ReplicaSet) -> tuple[DummyState, str] | None:
        """The writable replica that has seen all that has been written.

        Where none is known to have, it is the one that has seen the most,
        if there can be no other.
        """
        best: tuple[tuple[int, int], DummyState, str] | None = None
        seen = 0  # by one that is broken, or may have been
        for one in relation.members:
            home = self._replicating().find_state_of(one)
            if home is None:
                seen = relation.epoch
                continue
            record = self._found((home, one))
            if record.get('epoch') is None:
                continue
            if _unfit(home, one):
                seen = max(seen, record['epoch'])
                continue
            rank = record['epoch'], record['version']
            if best is None or rank > best[0]:
                best = rank, home, one
        return best[1:] if best is not None and best[0][0] >= seen else None

    def _found(self, source: tuple[DummyState, str]) -> records.Record:
        home, id = source
        record = home.shares.find(id)
        if record is None:
            raise exception.ShareResourceNotFound(share_id=id)
        return record

    def _next(self, record: records.Record) -> records.Record:
        """The version after this one, of a share that has any."""
        return (
            {'version': record['version'] + 1} if 'version' in record else {}
        )

    def _current(self, share_id: str) -> records.Record:
        """The record of a share that is to be changed.

        Raises when it is a writable replica, and others have seen changes
        that cannot be had now.
        """
        self._catch_up(share_id)
        record = self._record(share_id)
        if self._style == WRITABLE and self._role(share_id, record) != ACTIVE:
            raise exception.ShareBackendException(
                msg=f'share {share_id} is behind its other replicas'
            )
        return record

    def _put(self, share_id: str, record: records.Record) -> None:
        """Change a share, and all writable replicas of it alike.

        Those that are not reached, by a process that is killed or at all,
        are behind from then on.
        """
        if self._style != WRITABLE or 'replica_of' not in record:
            if record != self._state.shares.find(share_id):
                self._state.shares.put(share_id, record)
            return
        domain, share = self._replicating(), record['replica_of']
        relation = domain.find(share) or ReplicaSet(None, members=[share_id])
        homes = [(one, domain.find_state_of(one)) for one in relation.members]
        there = [
            (one, home, found)
            for one, home in homes
            if home
            and (found := home.shares.find(one))
            and found.get('epoch') is not None
        ]
        if record == self._state.shares.find(share_id) and all(
            with_replicated_fields(found, record) == found
            for _, _, found in there
        ):
            return
        relation = relation._replace(epoch=relation.epoch + 1)
        domain.put(share, relation)
        now = {'epoch': relation.epoch}
        self._state.shares.put(share_id, record | now)
        for one, home, found in there:
            if one != share_id:
                home.shares.put(
                    one, with_replicated_fields(found, record) | now
                )

    def _catch_up(self, share_id: str) -> None:
        """Have a writable replica that is behind be like the others."""
        record = self._record(share_id)
        if (
            self._style != WRITABLE
            or 'replica_of' not in record
            or record['epoch'] is None
        ):
            return
        relation = self._replicating().find(record['replica_of'])
        if relation is None or is_synced(record, relation):
            return
        source = self._source_of(relation)
        if source is not None:
            self._state.shares.put(
                share_id,
                with_replicated_fields(record, self._found(source))
                | {'epoch': relation.epoch},
            )


def with_replicated_fields(
    record: records.Record, leading: records.Record
) -> records.Record:
    """A replica with all that follows from the leading one."""
    return record | {name: leading[name] for name in _FOLLOWING}


def _unfit(home: DummyState, replica_id: str) -> bool:
    record = home.shares.find(replica_id)
    return record is None or record['status'] != 'available'
