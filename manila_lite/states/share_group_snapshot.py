"""The status of a snapshot of a share group.

The statuses follow statuses.csv of the published API, the rescues the
start-up reconciliation design. The shares of the group are snapshotting
while it is created.
"""

from manila_lite.states.machine import GONE, Ask, Machine, Repeat


class GroupSnapshotStatus:
    """The statuses of share group snapshots, spelled once."""

    CREATING = 'creating'
    AVAILABLE = 'available'
    ERROR = 'error'
    DELETING = 'deleting'


# Short in the table only.
S = GroupSnapshotStatus

_ALL = frozenset({S.CREATING, S.AVAILABLE, S.ERROR, S.DELETING})

# fmt: off
SHARE_GROUP_SNAPSHOT = Machine(
    'share_group_snapshot', 'share_group_snapshots',
    initial={'create': S.CREATING},
    moves=[
        # event            from                           to
        ('created',        {S.CREATING},                  S.AVAILABLE),
        ('create_failed',  {S.CREATING},                  S.ERROR),

        ('delete',         {S.AVAILABLE, S.ERROR},        S.DELETING),
        ('deleted',        {S.DELETING},                  GONE),
        ('delete_failed',  {S.DELETING},                  S.ERROR),

        # It only touches the database.
        ('force_delete',   _ALL,                          GONE),
    ],
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
