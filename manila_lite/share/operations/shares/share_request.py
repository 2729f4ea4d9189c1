"""The request for a new share, also for one from a snapshot."""

from collections.abc import Collection
import dataclasses
import functools
import re
import typing

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.shares import clone_sources, instances as share_instances
from manila_lite.db.queries.types.types import TypeWithSpecs, capability_columns
from manila_lite.db.session import Session
from manila_lite.quota.charges import Owner
from manila_lite.states.snapshot_instance import SnapshotStatus

_MOUNT_POINT = re.compile(r'[A-Za-z0-9_-]{1,255}')


@dataclasses.dataclass(frozen=True)
class ShareRequest:
    """A request for a share; fields are named as in the published body.

    `size` is None only if the size of a snapshot is to be used.
    `apply_type_zones` and `check_clone_support` enable rules that depend on
    the API version of the request.
    """

    share_proto: str
    size: int | None
    name: str | None = None
    description: str | None = None
    share_type: str | None = None
    snapshot_id: str | None = None
    share_network_id: str | None = None
    share_group_id: str | None = None
    availability_zone: str | None = None
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    is_public: bool = False
    scheduler_hints: dict[str, str] = dataclasses.field(default_factory=dict)
    mount_point_name: str | None = None
    encryption_key_ref: str | None = None
    apply_type_zones: bool = False
    check_clone_support: bool = False


@dataclasses.dataclass(frozen=True)
class NewShare:
    """A request that has passed all checks, and what it leads to.

    A share from a snapshot has a `host` where it is created beside its source,
    without the scheduler.
    """

    request: ShareRequest
    proto: str
    owner: Owner
    source: rows.CloneSourceRow | None
    host: str | None
    share_type: TypeWithSpecs | None
    qos_type_id: str | None
    zone: rows.ZoneRow | None
    zones: list[str]
    hints: typing.Mapping[str, typing.Any]

    @property
    def size(self) -> int:
        return typing.cast(int, self.request.size)  # at least that of a snapshot

    @functools.cached_property
    def capabilities(self) -> dict[str, typing.Any]:
        """The columns of the share that its type decides."""
        return capability_columns(self.share_type)


def check_type(request: ShareRequest, share_type: TypeWithSpecs) -> None:
    """Raise InvalidInput if the type does not support the request."""
    if request.size is None:
        raise exception.InvalidInput(
            reason='size must be an integer from 1 to 2147483647'
        )
    specs = share_type.extra_specs
    check_network(request, share_type)
    if (
        request.encryption_key_ref
        # A clone has the key of its source, whatever its type is now.
        and not request.snapshot_id
        and not specs.get('encryption_support')
    ):
        raise exception.InvalidInput(
            reason='encryption_key_ref requires a share type with encryption_support'
        )
    check_mount_point_support(request, share_type)
    check_size(request.size, specs, creating=True)


def check_network(request: ShareRequest, share_type: TypeWithSpecs) -> None:
    """Require a share network if, and only if, the type has DHSS true."""
    with_servers = share_type.flag('driver_handles_share_servers')
    if with_servers and request.share_network_id is None:
        raise exception.InvalidInput(
            reason='share_network_id is required by share type '
            f'{share_type.name}, whose driver_handles_share_servers '
            'is true'
        )
    if request.share_network_id is not None and not with_servers:
        raise exception.InvalidInput(
            reason='share_network_id cannot be used with share type '
            f'{share_type.name}, whose driver_handles_share_servers '
            'is false'
        )


def check_mount_point_support(request: ShareRequest, share_type: TypeWithSpecs) -> None:
    """Refuse a mount point name if the type does not support one."""
    if request.mount_point_name and not share_type.flag('mount_point_name_support'):
        raise exception.InvalidInput(
            reason='mount_point_name requires a share type with '
            'mount_point_name_support'
        )


def check_protocol(proto: str, enabled: Collection[str]) -> None:
    """Refuse a protocol (in upper case) that is not enabled."""
    if proto not in enabled:
        raise exception.InvalidInput(
            reason=f'share_proto {proto} is not one of {", ".join(sorted(enabled))}'
        )


def check_size(
    size: int,
    specs: typing.Mapping[str, str],
    *,
    creating: bool = False,
    growing: bool = False,
    allow_beyond_maximum: bool = False,
) -> None:
    """Check a size against the limits of the type (`provisioning:`).

    The minimum applies to new and shrunk shares, the maximum to new and
    extended ones. With `allow_beyond_maximum`, `max_share_extend_size`
    applies instead of `max_share_size`.
    """
    minimum = _limit(specs, 'provisioning:min_share_size')
    if not growing and minimum is not None and size < minimum:
        raise exception.InvalidInput(
            reason=f'size {size} GiB is below the minimum of {minimum} GiB '
            'of the share type'
        )
    key = (
        'provisioning:max_share_extend_size'
        if allow_beyond_maximum
        else 'provisioning:max_share_size'
    )
    maximum = _limit(specs, key)
    if (creating or growing) and maximum is not None and size > maximum:
        raise exception.InvalidInput(
            reason=f'size {size} GiB is above the maximum of {maximum} '
            'GiB of the share type'
        )


def _limit(specs: typing.Mapping[str, str], key: str) -> int | None:
    text = specs.get(key)
    return int(text) if text and text.isdigit() else None


def type_zones(share_type: TypeWithSpecs) -> list[str]:
    """Return the zones that a type names; empty means any."""
    text = share_type.extra_specs.get('availability_zones', '')
    return [zone.strip() for zone in text.split(',') if zone.strip()]


def allowed_zones(request: ShareRequest, share_type: TypeWithSpecs | None) -> list[str]:
    """Return the zones the share may be placed in; empty means any."""
    allowed: list[str] = []
    if request.apply_type_zones and share_type is not None:
        allowed = type_zones(share_type)
    if request.availability_zone is None:
        return allowed
    if allowed and request.availability_zone not in allowed:
        raise exception.InvalidInput(
            reason=f'availability_zone {request.availability_zone} is not '
            f'one of those of the share type: {", ".join(allowed)}'
        )
    return [request.availability_zone]


def free_mount_point_name(
    session: Session,
    request: ShareRequest,
    share_type: TypeWithSpecs | None,
    prefix: str,
    project_id: str,
    except_id: str = '',
) -> str | None:
    """Return the mount point name with its prefix; raises if it is in use.

    `except_id` is the id of a share that may have it.
    """
    name = full_mount_point_name(request, share_type, prefix, project_id)
    if name is not None and share_instances.is_mount_point_used(
        session, name, except_id
    ):
        raise exception.InvalidInput(
            reason=f'mount_point_name {name} is that of another share'
        )
    return name


def full_mount_point_name(
    request: ShareRequest,
    share_type: TypeWithSpecs | None,
    prefix: str,
    project_id: str,
) -> str | None:
    """Return the mount point name with the prefix of the type or option."""
    if not request.mount_point_name or share_type is None:
        return None
    prefix = share_type.extra_specs.get('provisioning:mount_point_prefix', prefix)
    name = prefix.replace('{project_id}', project_id) + request.mount_point_name
    if not _MOUNT_POINT.fullmatch(name):
        raise exception.InvalidInput(
            reason='mount_point_name may contain letters, digits, _ and -, '
            f'at most 255 with its prefix, not {name!r}'
        )
    return name


def lock_source_shared(
    session: Session, ctx: RequestContext, snapshot_id: str
) -> typing.Any:
    """Lock an available snapshot FOR SHARE; raises InvalidShareSnapshot.

    It must belong to the caller's project. Administrators see those of all
    projects, and would copy the data of one to another.
    """
    source = clone_sources.lock_source_shared(session, snapshot_id)
    if source.project_id != ctx.project_id:
        raise exception.InvalidShareSnapshot(
            reason=f'snapshot {snapshot_id} belongs to project '
            f'{source.project_id}, not {ctx.project_id}'
        )
    if source.status != SnapshotStatus.AVAILABLE:
        raise exception.InvalidShareSnapshot(
            reason=f'status of snapshot {snapshot_id} must be available, '
            f'not {source.status}'
        )
    return source


def complete_request(
    request: ShareRequest,
    source: rows.CloneSourceRow,
    proto: str,
    *,
    allow_other_zone: bool,
) -> ShareRequest:
    """Return the request with defaults from the snapshot.

    Raises InvalidInput where it contradicts the snapshot. A clone may be in
    another zone only with `allow_other_zone`.
    """
    if request.check_clone_support and not source.create_share_from_snapshot_support:
        raise exception.InvalidInput(
            reason='the share of the snapshot does not support creating '
            'shares from its snapshots'
        )
    if request.size is not None and request.size < source.size:
        raise exception.InvalidInput(
            reason=f'size must be at least the {source.size} GiB of the '
            f'snapshot, not {request.size}'
        )
    if proto != source.share_proto:
        raise exception.InvalidInput(
            reason=f'share_proto must be {source.share_proto}, as for the '
            f'snapshot, not {proto}'
        )
    network = request.share_network_id
    if network is not None and network != source.share_network_id:
        raise exception.InvalidInput(
            reason='share_network_id must be that of the share of the '
            'snapshot, or omitted'
        )
    key = request.encryption_key_ref
    if key is not None and key != source.encryption_key_ref:
        raise exception.InvalidInput(
            reason='encryption_key_ref must be that of the share of the '
            'snapshot, or omitted'
        )
    zone = request.availability_zone
    if (
        zone is not None
        and not allow_other_zone
        and zone not in (source.availability_zone, source.availability_zone_id)
    ):
        raise exception.InvalidInput(
            reason='availability_zone must be that of the share of the '
            f'snapshot, {source.availability_zone}, not {zone}'
        )
    return dataclasses.replace(
        request,
        size=source.size if request.size is None else request.size,
        share_type=request.share_type or source.share_type_id,
        share_network_id=source.share_network_id,
        encryption_key_ref=source.encryption_key_ref,
        availability_zone=zone or source.availability_zone,
    )


def check_same_type(source: rows.CloneSourceRow, share_type_id: str | None) -> None:
    """Refuse a type other than that of the snapshot's share."""
    if share_type_id != source.share_type_id:
        raise exception.InvalidInput(
            reason='share_type must be that of the share of the snapshot, or omitted'
        )
