"""The payload of events, by kind of resource."""

import datetime
import typing

from manila_lite.db.rows import MoveOwnerRow, UnsentMoveRow
from manila_lite.states import (
    access_rule,
    share_backup,
    share_group,
    share_instance,
    share_network,
    share_replica,
    share_server,
    share_task,
    share_transfer,
    snapshot_instance,
)
from manila_lite.states.machine import Machine

VERSION = '1.0'
"""Version of payloads. The second number grows with each added field, the
first when a field changes its meaning or is removed."""


class EventKind(typing.NamedTuple):
    """Events about one state machine; `parent` names the parent's id."""

    machine: Machine
    meaning: str
    parent: str | None = None

    @property
    def table(self) -> str:
        return self.machine.table


_KINDS = (
    EventKind(
        share_instance.SHARE_INSTANCE, 'the copy of a share on a back end', 'share_id'
    ),
    EventKind(
        share_task.SHARE_TASK, 'the migration of a share; `id` is that of the share'
    ),
    EventKind(
        share_replica.SHARE_REPLICA,
        'the replica state of a share instance, with its id',
        'share_id',
    ),
    EventKind(
        access_rule.SHARE_INSTANCE_ACCESS,
        'the state of all access rules of a share instance, with its id',
        'share_id',
    ),
    EventKind(
        access_rule.ACCESS_RULE, 'an access rule on one share instance', 'access_id'
    ),
    EventKind(
        access_rule.SNAPSHOT_ACCESS_RULE,
        'an access rule on one snapshot instance',
        'access_id',
    ),
    EventKind(
        snapshot_instance.SNAPSHOT_INSTANCE,
        'the copy of a snapshot on a back end',
        'snapshot_id',
    ),
    EventKind(share_backup.SHARE_BACKUP, 'a backup of a share', 'share_id'),
    EventKind(share_group.SHARE_GROUP, 'a share group'),
    EventKind(
        share_group.SHARE_GROUP_SNAPSHOT,
        'a snapshot of a share group',
        'share_group_id',
    ),
    EventKind(
        share_transfer.SHARE_TRANSFER,
        'the transfer of a share; its project is the one that offers it',
        'share_id',
    ),
    EventKind(share_network.SHARE_NETWORK, 'a share network'),
    EventKind(share_server.SHARE_SERVER, 'a share server', 'share_network_id'),
    EventKind(
        share_server.SHARE_SERVER_TASK,
        'the migration of a share server, with its id',
        'share_network_id',
    ),
)

KINDS = {kind.machine.resource: kind for kind in _KINDS}
"""All kinds of resources, by name."""


def payload_of(
    move: UnsentMoveRow, owner: MoveOwnerRow | None
) -> dict[str, typing.Any]:
    """Return what an event says about a move.

    `owner` are the parent and project of the resource if they are known.
    """
    kind = KINDS.get(move.resource)
    payload = {
        'version': VERSION,
        'sequence': move.id,
        'resource': move.resource,
        'id': move.resource_id,
        'project_id': owner and owner.project_id,
        'event': move.event,
        'old_status': move.from_status,
        'new_status': move.to_status,
        'request_id': move.request_id,
        'made_by': move.made_by,
        'reason': move.reason,
        'time': move.made_at.replace(tzinfo=datetime.UTC).isoformat(
            timespec='microseconds'
        ),
    }
    if kind and kind.parent:
        payload[kind.parent] = owner and owner.parent_id
    return payload
