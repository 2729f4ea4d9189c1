"""The statuses of share groups and of their snapshots.

The statuses follow statuses.csv of the published API, the rescues the
start-up reconciliation design. The shares of a group are snapshotting while a
snapshot of it is created.
"""

from manila_lite.states.machine import GONE, Ask, Machine, Repeat


class GroupStatus:
    """The statuses of share groups, spelled once."""

    CREATING = 'creating'
    AVAILABLE = 'available'
    ERROR = 'error'
    DELETING = 'deleting'


class GroupSnapshotStatus(GroupStatus):
    """The statuses of share group snapshots, which are those of groups."""


IN_POOL = 'pool'
ON_HOST = 'host'
CONSISTENCIES = (IN_POOL, ON_HOST)
"""Within what snapshots of a group may be consistent."""


# Short in the table only.
S = GroupStatus

_ALL = frozenset({S.CREATING, S.AVAILABLE, S.ERROR, S.DELETING})


# fmt: off
_MOVES = [
    # event            from                           to
    ('created',        {S.CREATING},                  S.AVAILABLE),
    ('create_failed',  {S.CREATING},                  S.ERROR),

    ('delete',         {S.AVAILABLE, S.ERROR},        S.DELETING),
    ('deleted',        {S.DELETING},                  GONE),
    ('delete_failed',  {S.DELETING},                  S.ERROR),

    # It only touches the database.
    ('force_delete',   _ALL,                          GONE),
]

SHARE_GROUP = Machine(
    'share_group', 'share_groups',
    initial={'create': S.CREATING},
    moves=_MOVES,
    resets=_ALL,
    at_rest={S.AVAILABLE, S.ERROR},
    in_flight={
        S.CREATING: Ask('get_share_group_status',
                        'created', 'create_failed'),
        S.DELETING: Repeat('share_groups.delete_share_group',
                           'deleted', 'delete_failed'),
    },
)

SHARE_GROUP_SNAPSHOT = Machine(
    'share_group_snapshot', 'share_group_snapshots',
    initial={'create': S.CREATING},
    moves=_MOVES,
    resets=_ALL,
    at_rest={S.AVAILABLE, S.ERROR},
    in_flight={
        S.CREATING: Ask('get_share_group_snapshot_status',
                        'created', 'create_failed'),
        S.DELETING: Repeat('share_group_snapshots.delete_share_group_snapshot',
                           'deleted', 'delete_failed'),
    },
)
# fmt: on
