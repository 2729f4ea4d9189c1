"""The events by which administrators set a status."""

from collections.abc import Collection

from manila_lite import exception
from manila_lite.states.machine import Machine


def reset_event(
    machine: Machine,
    status: str,
    *,
    field: str = 'status',
    allowed: Collection[str] | None = None,
) -> str:
    """Return the event that sets this status.

    Raises InvalidInput, which names the field of the request, unless the
    status is among those that are `allowed`, by default all that can be set.
    """
    statuses = machine.resets if allowed is None else allowed
    if status not in statuses:
        raise exception.InvalidInput(
            reason=f'{field} {status!r} is not one of '
            + ', '.join(sorted(statuses))
        )
    return machine.reset_event(status)
