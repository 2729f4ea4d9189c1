"""The placement of a new share, and its first rows."""

from collections.abc import Mapping
import typing

from oslo_db import exception as db_exc

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db import rows
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.services import services
from manila_lite.db.queries.shares import shares
from manila_lite.db.queries.types.types import TypeWithSpecs
from manila_lite.db.session import Session
from manila_lite.db.transitions import insert_row
from manila_lite.share.operations.networks import checks
from manila_lite.share.operations.shares import share_request
from manila_lite.share.operations.shares.share_request import ShareRequest
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE


def get_zone(session: Session, name_or_id: str | None) -> rows.ZoneRow | None:
    """Return the zone with this name or id; None means any zone."""
    if name_or_id is None:
        return None
    zone = services.find_zone(session, name_or_id)
    if zone is None:
        raise exception.AvailabilityZoneNotFound(zone=name_or_id)
    return zone


def list_zones(
    session: Session,
    ctx: RequestContext,
    request: ShareRequest,
    share_type: TypeWithSpecs | None,
) -> list[str]:
    """Return the zones of the type in which the network has subnets."""
    return zones_on_network(
        session,
        ctx,
        request.share_network_id,
        share_request.allowed_zones(request, share_type),
    )


def zones_on_network(
    session: Session,
    ctx: RequestContext,
    share_network_id: str | None,
    zones: list[str],
) -> list[str]:
    """Return the zones for which the network, if there is one, has subnets.

    The network must be active and of the caller's project. It is locked
    (shared).
    """
    if share_network_id is None:
        return zones
    network = checks.lock_active_shared(
        session, share_network_id, of_project=ctx.project_id
    )
    return checks.zones_with_subnet(session, network.id, zones)


def parse_hints(
    session: Session, ctx: RequestContext, hints: Mapping[str, typing.Any]
) -> dict[str, typing.Any]:
    """Return the hints with lists of share ids; all must be visible.

    `only_host` is for administrators, and ignored for others: they would pin
    pools, and learn from the outcome which hosts exist.
    """
    parsed: dict[str, typing.Any] = {
        key: sorted({id.strip() for id in hints[key].split(',')})
        for key in ('same_host', 'different_host')
        if hints.get(key)
    }
    wanted = {id for ids in parsed.values() for id in ids}
    missing = wanted - shares.filter_visible(
        session, wanted, typing.cast(str, ctx.project_id), bool(ctx.is_admin)
    )
    if missing:
        raise exception.ShareNotFound(share_id=', '.join(sorted(missing)))
    if ctx.is_admin and hints.get('only_host'):
        parsed['only_host'] = hints['only_host']
    return parsed


class NewRows(typing.NamedTuple):
    """The values of the columns of a share and its instance."""

    share: dict[str, typing.Any]
    instance: dict[str, typing.Any]


def insert(
    session: Session,
    ctx: RequestContext,
    share: Mapping[str, typing.Any],
    instance: Mapping[str, typing.Any],
    metadata: Mapping[str, str],
) -> NewRows:
    """Insert a share of the caller that is being created.

    `share` and `instance` are values of columns; the others are the same
    for every new share. Raises ShareTypeNotFound if the type has just been
    deleted.
    """
    share_id = session.new_id()
    new = NewRows(
        {
            'id': share_id,
            'project_id': ctx.project_id,
            'user_id': ctx.user_id,
            'is_soft_deleted': False,
            'created_at': session.now,
            **share,
        },
        {
            'id': session.new_id(),
            'share_id': share_id,
            'access_rules_status': RulesStatus.ACTIVE,
            'cast_rules_to_readonly': False,
            'created_at': session.now,
            **replicas.initial_columns(share_id, share['replication_type']),
            **instance,
        },
    )
    shares.insert(session, new.share, metadata)
    try:
        insert_row(session, SHARE_INSTANCE, 'create', **new.instance)
    except db_exc.DBReferenceError:
        # The type was deleted after it was read.
        raise exception.ShareTypeNotFound(
            share_type_id=instance['share_type_id']
        ) from None
    return new
