"""The arithmetic of limits: which may be set, and which are effective."""

from collections.abc import Mapping
import typing

from manila_lite import exception

UNLIMITED = -1
LARGEST = 2**31 - 1
"""The highest limit: the published column is a 32-bit integer."""

PER_SHARE = 'per_share_gigabytes'
"""The limit on the size of a single share, not on a sum."""


class Resource(typing.NamedTuple):
    """A resource that can be limited.

    `since` is the first API version that shows it; `per_type` says
    whether it can be limited per share type.
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
NAMES_PER_TYPE = tuple(resource.name for resource in RESOURCES if resource.per_type)


DefaultLimits = typing.NewType('DefaultLimits', dict[str, int])
"""The limits by resource where no quota is set."""


def from_options(group: object) -> DefaultLimits:
    """Return the limits that the option group `quota` sets by default."""
    return DefaultLimits({name: getattr(group, name) for name in NAMES})


def effective_limits(
    *layers: Mapping[str, int], names: tuple[str, ...] = NAMES
) -> dict[str, int]:
    """Return the effective limits; a later layer overrides an earlier."""
    return {
        name: next(
            (layer[name] for layer in reversed(layers) if name in layer), UNLIMITED
        )
        for name in names
    }


def parse(
    values: Mapping[str, object], names: tuple[str, ...] = NAMES
) -> dict[str, int]:
    """Return the limits that a request asks for; raises InvalidInput.

    Limits are integers from -1 up, and may be given as strings.
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
            reason=f'{name} must be between {UNLIMITED} and {LARGEST}, not {number}'
        )
    return number


def check(
    values: Mapping[str, int],
    *,
    used: Mapping[str, int],
    ceilings: Mapping[str, int] | None = None,
    force: bool = False,
) -> None:
    """Raise InvalidInput if the limits may not be set.

    `ceilings` are the limits of the project, which those of its users and
    share types may not exceed. `force` allows all limits; that of the
    project remains in effect for every user and share type.
    """
    if force:
        return
    for name, limit in values.items():
        ceiling = (ceilings or {}).get(name, UNLIMITED)
        if exceeds(limit, ceiling):
            raise exception.InvalidInput(
                reason=f'{name} may not exceed the limit of the project, '
                f'{ceiling}, unless forced'
            )
        if limit != UNLIMITED and limit < used.get(name, 0):
            raise exception.InvalidInput(
                reason=f'{name} may not be less than what is in use, '
                f'{used[name]}, unless forced'
            )


def exceeds(limit: int, ceiling: int) -> bool:
    """Whether a limit is higher than the ceiling."""
    if ceiling == UNLIMITED:
        return False
    return limit == UNLIMITED or limit > ceiling
