"""The wire names of replica states.

Clients wait for the published states; the API shows one of them for a state
that only the database has.
"""

from manila_lite.api.fields import Field, fn
from manila_lite.states.share_replica import ReplicaState

WIRE_NAMES = {ReplicaState.ERROR_DELETING: ReplicaState.ERROR}


def replica_state_to_wire(stored: str | None) -> str | None:
    """Return the wire name of a value of the column `replica_state`."""
    return stored if stored is None else WIRE_NAMES.get(stored, stored)


def replica_state_field(since: str | None = None) -> Field:
    """Return the field `replica_state` of a view."""
    return Field('replica_state', fn(replica_state_to_wire, 'replica_state'), since)
