"""Share servers: the rows that managers and operations act on.

A server and what is on it, share instances and share groups, change
together: code that puts something on a server, removes it or removes the
server first locks the row of the server.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import hashlib
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries import private_data
from manila_lite.db.queries.servers import server_load
from manila_lite.db.queries.servers.server_load import NO_LIMITS, ServerLimits
from manila_lite.db.rows import (
    AllocationRow,
    SecurityServiceRow,
    ShareServerRow,
    SubnetRow,
)
from manila_lite.db.session import ConcurrentChange, Session
from manila_lite.db.tables import (
    ALLOCATION,
    ATTACHED as OF_SECURITY,
    GROUP,
    INSTANCE,
    NETWORK,
    OF_SUBNET,
    SECURITY_SERVICE as SECURITY,
    SERVER,
    SERVER_DETAIL as DETAIL,
    SHARE,
    SUBNET,
    SUBNET_METADATA,
    WORK,
    ZONE,
)
from manila_lite.host import Host
from manila_lite.states.share_group import SHARE_GROUP
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_server import ServerStatus

_MAX_DETAIL_LENGTH = 1023

# The project of a server is that of its network.
_FULL = sa.select(
    SERVER,
    NETWORK.c.project_id,
    NETWORK.c.user_id,
    NETWORK.c.name.label('share_network_name'),
).select_from(SERVER.outerjoin(NETWORK))
_GET = _FULL.where(SERVER.c.id == sa.bindparam('server_id'))
_LOCK_SHARED = _GET.with_for_update(read=True, of=SERVER)
_LOCK = (
    sa.select(SERVER.c.status)
    .where(SERVER.c.id == sa.bindparam('server_id'))
    .with_for_update()
)
_BY_IDS = _FULL.where(SERVER.c.id.in_(sa.bindparam('ids', expanding=True))).order_by(
    SERVER.c.id
)
_DETAILS = (
    sa.select(DETAIL)
    .where(DETAIL.c.share_server_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(DETAIL.c.key)
)
_SUBNETS = (
    sa.select(OF_SUBNET)
    .where(OF_SUBNET.c.share_server_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(OF_SUBNET.c.share_network_subnet_id)
)
_ALLOCATIONS = (
    sa.select(ALLOCATION)
    .where(ALLOCATION.c.share_server_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(
        ALLOCATION.c.label.desc(), ALLOCATION.c.created_at, ALLOCATION.c.ip_address
    )
)
_IS_USED = sa.select(
    sa.or_(
        sa.exists().where(INSTANCE.c.share_server_id == sa.bindparam('of_server')),
        sa.exists().where(GROUP.c.share_server_id == sa.bindparam('of_server')),
    )
)
_IS_BUILD_BEGUN = sa.select(
    sa.or_(
        *(
            sa.exists().where(
                occupant.c.share_server_id == sa.bindparam('of_server'),
                WORK.c.resource == resource,
                WORK.c.resource_id == occupant.c.id,
                WORK.c.attempt > 0,
            )
            for occupant, resource in (
                (INSTANCE, SHARE_INSTANCE.resource),
                (GROUP, SHARE_GROUP.resource),
            )
        )
    )
)
_IDENTIFIERS = sa.select(SERVER.c.identifier).where(
    SERVER.c.host == sa.bindparam('of_host'),
    SERVER.c.identifier.is_not(None),
    # A server that could not be managed may have a wrong name.
    SERVER.c.status != ServerStatus.MANAGE_ERROR,
)
_DROP_DETAILS = sa.delete(DETAIL).where(
    DETAIL.c.share_server_id == sa.bindparam('of_server'),
    DETAIL.c.key.in_(sa.bindparam('keys', expanding=True)),
)
_BIND = (
    sa.update(INSTANCE)
    .where(
        INSTANCE.c.id == sa.bindparam('instance_id'),
        INSTANCE.c.share_server_id.is_(None),
    )
    .values(share_server_id=sa.bindparam('new_server'))
)
_BIND_GROUP = (
    sa.update(GROUP)
    .where(GROUP.c.id == sa.bindparam('group_id'), GROUP.c.share_server_id.is_(None))
    .values(share_server_id=sa.bindparam('new_server'))
)


def get(
    session: Session, server_id: str, *, lock_shared: bool = False
) -> ShareServerRow:
    """Return a server with project_id and user_id of its network.

    With `lock_shared` the server is locked (shared).
    """
    row = session.first(_LOCK_SHARED if lock_shared else _GET, server_id=server_id)
    if row is None:
        raise exception.ShareServerNotFound(share_server_id=server_id)
    return row


def find(session: Session, server_id: str) -> ShareServerRow | None:
    """Like `get`, but return None if the server is gone."""
    return session.first(_GET, server_id=server_id)


def is_identifier_known(session: Session, service_host: str, identifier: str) -> bool:
    """Whether the back end has a server with a similar identifier.

    Back ends derive names from identifiers, so they are similar as well if
    they differ by `-` and `_` only, or if one is the end of the other behind
    such a character.
    """
    wanted = _normalise(identifier)
    return any(
        wanted.endswith(known) or known.endswith(wanted)
        for known in (
            _normalise(row.identifier)
            for row in session.rows(_IDENTIFIERS, of_host=service_host)
        )
    )


def _normalise(identifier: str) -> str:
    """Return an identifier whose parts begin with a character each."""
    return '_' + identifier.replace('-', '_')


def lock(session: Session, server_id: str) -> str | None:
    """Lock a server; return its status, or None if it is gone.

    The lock also keeps shares and groups from being put on the server.
    """
    return session.value(_LOCK, server_id=server_id)


def list_by_ids(session: Session, ids: Collection[str]) -> Sequence[ShareServerRow]:
    """Return servers ordered by id; those that are gone are left out."""
    return session.rows(_BY_IDS, ids=sorted(ids))


# Dependent rows of servers; one statement each, for any number of servers


def get_backend_details(
    session: Session, ids: Collection[str]
) -> dict[str, dict[str, str]]:
    """Return the details that drivers have stored, by server id."""
    found: dict[str, dict[str, str]] = {id: {} for id in ids}
    for row in session.rows(_DETAILS, ids=sorted(ids)):
        found[row.share_server_id][row.key] = row.value
    return found


def list_subnet_ids(session: Session, ids: Collection[str]) -> dict[str, list[str]]:
    """Return the ids of the subnets of servers, by server id."""
    found: dict[str, list[str]] = {id: [] for id in ids}
    for row in session.rows(_SUBNETS, ids=sorted(ids)):
        found[row.share_server_id].append(row.share_network_subnet_id)
    return found


def list_allocations(
    session: Session, ids: Collection[str]
) -> dict[str, list[AllocationRow]]:
    """Return the addresses of servers, by server id, user ones first."""
    found: dict[str, list[AllocationRow]] = {id: [] for id in ids}
    for row in session.rows(_ALLOCATIONS, ids=sorted(ids)):
        found[row.share_server_id].append(row)
    return found


def merge_details(
    session: Session, server_id: str, values: Mapping[str, object]
) -> None:
    """Store details; other keys are kept, a value of None deletes one."""
    details = {str(key): value for key, value in values.items()}
    if not details:
        return
    session.run(_DROP_DETAILS, of_server=server_id, keys=sorted(details))
    session.run_many(
        sa.insert(DETAIL),
        [
            {
                'share_server_id': server_id,
                'key': key,
                'value': str(value)[:_MAX_DETAIL_LENGTH],
            }
            for key, value in sorted(details.items())
            if value is not None
        ],
    )


def add_subnets(session: Session, server_id: str, ids: Iterable[str]) -> None:
    """Record that a server has addresses in these subnets."""
    session.run_many(
        sa.insert(OF_SUBNET),
        [{'share_server_id': server_id, 'share_network_subnet_id': id} for id in ids],
    )


# Networks of servers


def list_zone_subnets(
    session: Session, share_network_id: str | None, zone: str | None
) -> Sequence[SubnetRow]:
    """Return the subnets of a zone, or else those without a zone."""
    rows = session.rows(
        sa.select(SUBNET, ZONE.c.name.label('availability_zone'))
        .select_from(SUBNET.outerjoin(ZONE))
        .where(SUBNET.c.share_network_id == share_network_id)
        .order_by(SUBNET.c.id)
    )
    return [row for row in rows if zone and row.availability_zone == zone] or [
        row for row in rows if row.availability_zone is None
    ]


def list_subnets(session: Session, ids: Collection[str]) -> Sequence[SubnetRow]:
    """Return subnets, ordered by id."""
    return session.rows(
        sa.select(SUBNET).where(SUBNET.c.id.in_(sorted(ids))).order_by(SUBNET.c.id)
    )


def get_subnet_metadata(
    session: Session, ids: Collection[str]
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {id: {} for id in ids}
    for row in session.rows(
        sa.select(SUBNET_METADATA).where(
            SUBNET_METADATA.c.share_network_subnet_id.in_(sorted(ids))
        )
    ):
        found[row.share_network_subnet_id][row.key] = row.value
    return found


def list_security_services(
    session: Session, share_network_id: str | None
) -> Sequence[SecurityServiceRow]:
    """Return the security services of a network, by type."""
    return session.rows(
        sa.select(SECURITY)
        .join(OF_SECURITY)
        .where(OF_SECURITY.c.share_network_id == share_network_id)
        .order_by(SECURITY.c.type)
    )


def list_security_services_by_id(
    session: Session, ids: Collection[str]
) -> Sequence[SecurityServiceRow]:
    """Return those security services that still exist."""
    return session.rows(
        sa.select(SECURITY)
        .where(SECURITY.c.id.in_(sorted(ids)))
        .order_by(SECURITY.c.type)
    )


# The server of a new share, or of a new share group


def make_build_key(
    host: str, subnet_ids: Iterable[str], encryption_key_ref: str | None = None
) -> str:
    """Return the key that allows one server at a time to be built."""
    key = '\n'.join(
        (Host.parse(host).service_host, encryption_key_ref or '', *sorted(subnet_ids))
    )
    return hashlib.sha256(key.encode()).hexdigest()


def insert_unique(session: Session, insert: typing.Callable[[], None]) -> None:
    """Insert a server that another transaction may insert simultaneously.

    The transaction that comes second runs again and finds the row.
    """
    try:
        insert()
    except db_exc.DBDuplicateEntry as error:
        raise ConcurrentChange(table=SERVER.name) from error


def is_being_built(session: Session, build_key: str) -> bool:
    """Whether a server with this key is being built."""
    return (
        session.value(sa.select(SERVER.c.id).where(SERVER.c.build_key == build_key))
        is not None
    )


def list_suitable(
    session: Session,
    host: str,
    subnet_ids: Collection[str],
    size: int,
    limits: ServerLimits = NO_LIMITS,
    *,
    encryption_key_ref: str | None = None,
) -> list[str]:
    """Return active servers of a back end that can take such a share.

    They are in all of these subnets. Servers with the most shares come
    first, so that others become idle.
    """
    count = sa.func.count(INSTANCE.c.id)
    gigabytes = sa.func.coalesce(
        sa.func.sum(SHARE.c.size), 0
    ) + server_load.snapshots_on(SERVER.c.id)
    inside = (
        sa.select(sa.func.count())
        .select_from(OF_SUBNET)
        .where(
            OF_SUBNET.c.share_server_id == SERVER.c.id,
            OF_SUBNET.c.share_network_subnet_id.in_(sorted(subnet_ids)),
        )
        .scalar_subquery()
    )
    rows = session.rows(
        sa.select(
            SERVER.c.id,
            SERVER.c.created_at,
            count.label('number'),
            gigabytes.label('gigabytes'),
        )
        .select_from(
            SERVER.outerjoin(
                INSTANCE, INSTANCE.c.share_server_id == SERVER.c.id
            ).outerjoin(SHARE, SHARE.c.id == INSTANCE.c.share_id)
        )
        .where(
            SERVER.c.host == Host.parse(host).service_host,
            SERVER.c.status == ServerStatus.ACTIVE,
            inside == len(subnet_ids),
            SERVER.c.encryption_key_ref == encryption_key_ref
            if encryption_key_ref
            else SERVER.c.encryption_key_ref.is_(None),
        )
        .group_by(SERVER.c.id, SERVER.c.created_at)
        .order_by(count.desc(), SERVER.c.created_at, SERVER.c.id)
    )
    return [
        row.id
        for row in rows
        if limits.allows(row.number + 1, int(row.gigabytes) + size)
    ]


def bind(
    session: Session,
    instance_id: str,
    server_id: str,
    size: int,
    limits: ServerLimits = NO_LIMITS,
) -> bool:
    """Put an instance without a server on one, if its limits allow it.

    The server must be active. A concurrent transaction that puts another
    instance on it waits, and then counts this one. Shares on it that are
    being extended count with what is added to them.
    """
    return _has_room(session, server_id, size, limits) and attach(
        session, instance_id, server_id
    )


def _has_room(
    session: Session, server_id: str, size: int, limits: ServerLimits
) -> bool:
    """Lock a server for another share; False if it cannot have one."""
    if not server_load.lock_for_use(session, server_id):
        return False
    count, gigabytes = server_load.get_load(session, server_id)
    if limits.gigabytes >= 0:
        gigabytes += server_load.get_growth(session, server_id)
    return limits.allows(count + 1, gigabytes + size)


def attach(session: Session, instance_id: str, server_id: str) -> bool:
    """Put an instance on a server that the caller locked or inserted."""
    return bool(session.run(_BIND, instance_id=instance_id, new_server=server_id))


def bind_group(
    session: Session,
    group_id: str,
    server_id: str,
    size: int,
    limits: ServerLimits = NO_LIMITS,
) -> bool:
    """Put a group without a server on one, as `bind` does.

    It must have room for a share of this size, which is not reserved.
    """
    return _has_room(session, server_id, size, limits) and attach_group(
        session, group_id, server_id
    )


def attach_group(session: Session, group_id: str, server_id: str) -> bool:
    """Put a group on a server that the caller locked or inserted."""
    return bool(session.run(_BIND_GROUP, group_id=group_id, new_server=server_id))


def find_server_id(session: Session, instance_id: str) -> str | None:
    """Return the id of the server of an instance, or None."""
    return session.value(
        sa.select(INSTANCE.c.share_server_id).where(INSTANCE.c.id == instance_id)
    )


def is_used(session: Session, server_id: str) -> bool:
    """Whether any instance or share group is on a server.

    Reliable only under a lock.
    """
    return bool(session.value(_IS_USED, of_server=server_id))


def has_work_begun(session: Session, server_id: str) -> bool:
    """Whether a share or group on a server has work that was ever claimed.

    While the server is in creating, that is what builds it.
    """
    return bool(session.value(_IS_BUILD_BEGUN, of_server=server_id))


def update(session: Session, server_id: str, **values: object) -> None:
    """Change plain columns of a server; never a status."""
    session.run(
        sa.update(SERVER)
        .where(SERVER.c.id == server_id)
        .values(updated_at=session.now, **values)
    )


def list_ids_on_host(
    session: Session, service_host: str, statuses: Collection[str]
) -> list[str]:
    """Return ids of the servers of a back end in one of these statuses."""
    return [
        row.id
        for row in session.rows(
            sa.select(SERVER.c.id)
            .where(SERVER.c.host == service_host, SERVER.c.status.in_(sorted(statuses)))
            .order_by(SERVER.c.id)
        )
    ]


def delete_dependents(session: Session, server_id: str) -> None:
    """Delete the dependent rows of a server before it is removed.

    What its driver has stored about it is deleted, too.
    Addresses are not among them: the network plug-in releases them.
    """
    for table in (DETAIL, OF_SUBNET):
        session.run(sa.delete(table).where(table.c.share_server_id == server_id))
    private_data.delete_all(session, [server_id])
