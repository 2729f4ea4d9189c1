"""`replica_state` of an instance: how well a replica follows its share.

The values and the moves follow the share replication design. The API shows
those that clients know. Instances of shares without replication have no value.
No state here is in flight: work in progress shows in `status`.
"""

from manila_lite.states.machine import Machine
from manila_lite.states.share_instance import InstanceStatus

WRITABLE = 'writable'
READABLE = 'readable'
DR = 'dr'

PROMOTABLE = frozenset({READABLE, DR})
"""The types with one active replica, and others that can be promoted."""


class ReplicaState:
    """The values of `replica_state`, spelled once."""

    ACTIVE = 'active'
    IN_SYNC = 'in_sync'
    OUT_OF_SYNC = 'out_of_sync'
    ERROR = 'error'
    ERROR_DELETING = 'error_deleting'


# Short in the table only.
P = ReplicaState


BROKEN = frozenset({P.ERROR, P.ERROR_DELETING})
PASSIVE = frozenset({P.IN_SYNC, P.OUT_OF_SYNC}) | BROKEN
UP_TO_DATE = frozenset({P.ACTIVE, P.IN_SYNC})
"""The states whose replicas decide the status of a snapshot."""

LEAVING = frozenset({InstanceStatus.DELETING, InstanceStatus.ERROR_DELETING})
"""The statuses of active replicas that another active one stands in for."""

# fmt: off
SHARE_REPLICA = Machine(
    'share_replica', 'share_instances', column='replica_state',
    initial={'create': P.ACTIVE, 'replicate': P.OUT_OF_SYNC},
    moves=[
        # event            from                               to
        ('caught_up',      {P.OUT_OF_SYNC} | BROKEN,          P.IN_SYNC),
        ('fell_behind',    {P.IN_SYNC} | BROKEN,              P.OUT_OF_SYNC),
        ('failed',         PASSIVE - {P.ERROR},               P.ERROR),
        # An active replica that could not be deleted stays active.
        ('delete_failed',  PASSIVE - {P.ERROR_DELETING},  P.ERROR_DELETING),
        ('activated',      PASSIVE,                           P.ACTIVE),
        # Another replica has been promoted.
        ('retired',        {P.ACTIVE},                        P.OUT_OF_SYNC),
        ('retired_in_sync', {P.ACTIVE},                       P.IN_SYNC),
        ('retired_broken', {P.ACTIVE},                        P.ERROR),
    ],
    resets={P.ACTIVE, P.IN_SYNC, P.OUT_OF_SYNC, P.ERROR},
    # Resetting the active replica would leave its share without one.
    final={P.ACTIVE},
    at_rest={P.ACTIVE} | PASSIVE,
    in_flight={},
)
# fmt: on
