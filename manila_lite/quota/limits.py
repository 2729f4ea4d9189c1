"""The arithmetic of limits: what may be set, and what is in force."""

from collections.abc import Mapping
import typing

from manila_lite import exception

UNLIMITED = -1
LARGEST = 2**31 - 1
"""No limit is higher: the published column is an integer of 32 bits."""

PER_SHARE = 'per_share_gigabytes'
"""Not a sum: every single share is compared with this limit."""


class Resource(typing.NamedTuple):
    """One thing that is limited.

    `since` is the first API version that shows it; `per_type` says
    whether it can be limited for a share type.
    """

    name: str
    since: str
    per_type: bool = True


RESOURCES = (
    Resource('shares', '2.0'),
    Resource('gigabytes', '2.0'),
    Resource('snapshots', '2.0'),
    Resource('snapshot_gigabytes', '2.0'),
    Resource('share_networks', '2.0', per_type=False),
    Resource('share_groups', '2.40', per_type=False),
    Resource('share_group_snapshots', '2.40', per_type=False),
    Resource('share_replicas', '2.53'),
    Resource('replica_gigabytes', '2.53'),
    Resource(PER_SHARE, '2.62'),
    Resource('backups', '2.80'),
    Resource('backup_gigabytes', '2.80'),
    Resource('encryption_keys', '2.90'),
)
NAMES = tuple(resource.name for resource in RESOURCES)
NAMES_PER_TYPE = tuple(
    resource.name for resource in RESOURCES if resource.per_type
)


def from_options(group: typing.Any) -> dict[str, int]:
    """The limits that the option group `quota` sets for every project."""
    return {name: getattr(group, name) for name in NAMES}


def effective_limits(
    *layers: Mapping[str, int], names: tuple[str, ...] = NAMES
) -> dict[str, int]:
    """The limits in force, in order: a later layer hides an earlier."""
    return {
        name: next(
            (layer[name] for layer in reversed(layers) if name in layer),
            UNLIMITED,
        )
        for name in names
    }


def parse(
    values: Mapping[str, object], names: tuple[str, ...] = NAMES
) -> dict[str, int]:
    """The limits a request asks for; raises InvalidInput.

    Whole numbers from -1 up, which may be written as strings.
    """
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise exception.InvalidInput(
            reason=f'{", ".join(unknown)} cannot be limited here'
        )
    return {name: _number(name, value) for name, value in values.items()}


def _number(name: str, value: object) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(value)
        number = int(value)
    except ValueError:
        raise exception.InvalidInput(
            reason=f'{name} must be a whole number, not {value!r}'
        ) from None
    if not UNLIMITED <= number <= LARGEST:
        raise exception.InvalidInput(
            reason=f'{name} must be between {UNLIMITED} and {LARGEST}, '
            f'not {number}'
        )
    return number


def check(
    values: Mapping[str, int],
    *,
    used: Mapping[str, int],
    ceilings: Mapping[str, int] | None = None,
    force: bool = False,
) -> None:
    """Return when the limits may be set; raises InvalidInput otherwise.

    `ceilings` are the project's limits, which those of its users and
    share types may not exceed. `force` allows less than what is `used`.
    """
    for name, limit in values.items():
        ceiling = (ceilings or {}).get(name, UNLIMITED)
        if exceeds(limit, ceiling):
            raise exception.InvalidInput(
                reason=f'{name} may not exceed the limit of the project, '
                f'{ceiling}'
            )
        if not force and limit != UNLIMITED and limit < used.get(name, 0):
            raise exception.InvalidInput(
                reason=f'{name} may not be less than what is in use, '
                f'{used[name]}, unless forced'
            )


def exceeds(limit: int, ceiling: int) -> bool:
    """Whether a limit allows what the ceiling does not."""
    if ceiling == UNLIMITED:
        return False
    return limit == UNLIMITED or limit > ceiling
