"""Share servers: the rows that managers and operations decide on.

A server and the instances on it change together: who puts an instance on
a server, takes one off, or has the server go, first holds its row.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import datetime
import hashlib
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.models import networks
from manila_lite.db.models import services
from manila_lite.db.models import share_servers
from manila_lite.db.models import shares
from manila_lite.db.session import ConcurrentChange
from manila_lite.db.session import Session
from manila_lite.states.share_server import ServerStatus

SERVER = share_servers.ShareServer.__table__
DETAIL = share_servers.ShareServerBackendDetail.__table__
OF_SUBNET = share_servers.ShareServerSubnet.__table__
ALLOCATION = share_servers.NetworkAllocation.__table__
NETWORK = networks.ShareNetwork.__table__
SUBNET = networks.ShareNetworkSubnet.__table__
SUBNET_METADATA = networks.ShareNetworkSubnetMetadata.__table__
SECURITY = networks.SecurityService.__table__
OF_SECURITY = networks.ShareNetworkSecurityService.__table__
INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__
ZONE = services.AvailabilityZone.__table__

_LONGEST_DETAIL = 1023

# The project of a server is that of its network.
_FULL = sa.select(
    SERVER,
    NETWORK.c.project_id,
    NETWORK.c.user_id,
    NETWORK.c.name.label('share_network_name'),
).select_from(SERVER.outerjoin(NETWORK))
_GET = _FULL.where(SERVER.c.id == sa.bindparam('server_id'))
_KEEP = _GET.with_for_update(read=True, of=SERVER)
_HOLD = (
    sa.select(SERVER.c.status)
    .where(SERVER.c.id == sa.bindparam('server_id'))
    .with_for_update()
)
_SOME = _FULL.where(
    SERVER.c.id.in_(sa.bindparam('ids', expanding=True))
).order_by(SERVER.c.id)
_DETAILS = (
    sa.select(DETAIL)
    .where(DETAIL.c.share_server_id.in_(sa.bindparam('ids', expanding=True)))
    .order_by(DETAIL.c.key)
)
_SUBNETS = (
    sa.select(OF_SUBNET)
    .where(
        OF_SUBNET.c.share_server_id.in_(sa.bindparam('ids', expanding=True))
    )
    .order_by(OF_SUBNET.c.share_network_subnet_id)
)
_ALLOCATIONS = (
    sa.select(ALLOCATION)
    .where(
        ALLOCATION.c.share_server_id.in_(sa.bindparam('ids', expanding=True))
    )
    .order_by(
        ALLOCATION.c.label.desc(),
        ALLOCATION.c.created_at,
        ALLOCATION.c.ip_address,
    )
)
_ON = INSTANCE.c.share_server_id == sa.bindparam('of_server')
_LOAD = (
    sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(SHARE.c.size), 0))
    .select_from(INSTANCE.join(SHARE))
    .where(_ON)
)
_ANY_ON = sa.select(INSTANCE.c.id).where(_ON).limit(1)
_KNOWN = (
    sa.select(SERVER.c.id)
    .where(
        SERVER.c.host == sa.bindparam('of_host'),
        SERVER.c.identifier == sa.bindparam('called'),
    )
    .limit(1)
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
_USE = (
    sa.update(SERVER)
    .where(
        SERVER.c.id == sa.bindparam('server_id'),
        SERVER.c.status == ServerStatus.ACTIVE,
    )
    .values(idle_since=None)
)
_IDLE = (
    sa.update(SERVER)
    .where(
        SERVER.c.id == sa.bindparam('server_id'),
        SERVER.c.idle_since.is_(None),
        ~sa.exists().where(INSTANCE.c.share_server_id == SERVER.c.id),
    )
    .values(idle_since=sa.bindparam('now'))
)


def get(
    session: Session, server_id: str, *, lock_shared: bool = False
) -> sa.Row:
    """A server, with project_id and user_id of its network.

    With `keep` it stays as it is until the transaction ends.
    """
    row = session.one(_KEEP if lock_shared else _GET, server_id=server_id)
    if row is None:
        raise exception.ShareServerNotFound(share_server_id=server_id)
    return row


def find(session: Session, server_id: str) -> sa.Row | None:
    """The same, or None when it is gone."""
    return session.one(_GET, server_id=server_id)


def is_identifier_known(
    session: Session, service_host: str, identifier: str
) -> bool:
    """Whether a server of the back end is so called there."""
    return (
        session.value(_KNOWN, of_host=service_host, called=identifier)
        is not None
    )


def lock(session: Session, server_id: str) -> str | None:
    """Its status, which nobody changes until the transaction ends.

    Nor does anybody put an instance on it. None when it is gone.
    """
    return session.value(_HOLD, server_id=server_id)


def list_by_ids(session: Session, ids: Collection[str]) -> Sequence[sa.Row]:
    """Servers by id, in order of id; those that are gone are left out."""
    return session.rows(_SOME, ids=sorted(ids))


# What hangs on servers; each is one statement, however many servers


def get_backend_details(
    session: Session, ids: Collection[str]
) -> dict[str, dict[str, str]]:
    """What drivers have remembered, by server id."""
    found: dict[str, dict[str, str]] = {id: {} for id in ids}
    for row in session.rows(_DETAILS, ids=sorted(ids)):
        found[row.share_server_id][row.key] = row.value
    return found


def list_subnet_ids(
    session: Session, ids: Collection[str]
) -> dict[str, list[str]]:
    """The subnets that servers have addresses in, by server id."""
    found: dict[str, list[str]] = {id: [] for id in ids}
    for row in session.rows(_SUBNETS, ids=sorted(ids)):
        found[row.share_server_id].append(row.share_network_subnet_id)
    return found


def list_allocations(
    session: Session, ids: Collection[str]
) -> dict[str, list[sa.Row]]:
    """Their addresses, by server id; those of users come first."""
    found: dict[str, list[sa.Row]] = {id: [] for id in ids}
    for row in session.rows(_ALLOCATIONS, ids=sorted(ids)):
        found[row.share_server_id].append(row)
    return found


def merge_details(
    session: Session, server_id: str, values: Mapping[str, typing.Any]
) -> None:
    """Remember these; other keys stay, a value of None forgets one."""
    told = {str(key): value for key, value in values.items()}
    if not told:
        return
    session.run(_DROP_DETAILS, of_server=server_id, keys=sorted(told))
    session.run_many(
        sa.insert(DETAIL),
        [
            {
                'share_server_id': server_id,
                'key': key,
                'value': str(value)[:_LONGEST_DETAIL],
            }
            for key, value in sorted(told.items())
            if value is not None
        ],
    )


def add_subnets(session: Session, server_id: str, ids: Iterable[str]) -> None:
    """Say that a server has addresses in these subnets."""
    session.run_many(
        sa.insert(OF_SUBNET),
        [
            {'share_server_id': server_id, 'share_network_subnet_id': id}
            for id in ids
        ],
    )


# Networks, as servers see them


def list_zone_subnets(
    session: Session, share_network_id: str, zone: str | None
) -> Sequence[sa.Row]:
    """The subnets that serve a zone: its own, or those of all zones."""
    rows = session.rows(
        sa.select(SUBNET, ZONE.c.name.label('availability_zone'))
        .select_from(SUBNET.outerjoin(ZONE))
        .where(SUBNET.c.share_network_id == share_network_id)
        .order_by(SUBNET.c.id)
    )
    return [row for row in rows if zone and row.availability_zone == zone] or [
        row for row in rows if row.availability_zone is None
    ]


def list_subnets(session: Session, ids: Collection[str]) -> Sequence[sa.Row]:
    """Subnets by id."""
    return session.rows(
        sa.select(SUBNET)
        .where(SUBNET.c.id.in_(sorted(ids)))
        .order_by(SUBNET.c.id)
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
) -> Sequence[sa.Row]:
    """The directory services of a network."""
    return session.rows(
        sa.select(SECURITY)
        .join(OF_SECURITY)
        .where(OF_SECURITY.c.share_network_id == share_network_id)
        .order_by(SECURITY.c.type)
    )


def list_security_services_by_id(
    session: Session, ids: Collection[str]
) -> Sequence[sa.Row]:
    """Those of these directory services that are still there."""
    return session.rows(
        sa.select(SECURITY)
        .where(SECURITY.c.id.in_(sorted(ids)))
        .order_by(SECURITY.c.type)
    )


# Which server a share may have


def make_build_key(
    host: str, subnet_ids: Iterable[str], encryption_key_ref: str | None = None
) -> str:
    """What there is one server in the making for, at most."""
    facts = '\n'.join(
        (host.partition('#')[0], encryption_key_ref or '', *sorted(subnet_ids))
    )
    return hashlib.sha256(facts.encode()).hexdigest()


def insert_unique(session: Session, insert: typing.Callable[[], None]) -> None:
    """Insert a server that somebody else may be inserting just now.

    Whoever is second begins the whole transaction anew, and finds it.
    """
    try:
        insert()
    except db_exc.DBDuplicateEntry as error:
        raise ConcurrentChange(table=SERVER.name) from error


def is_being_built(session: Session, build_key: str) -> bool:
    """Whether somebody is making that server just now."""
    return (
        session.value(
            sa.select(SERVER.c.id).where(SERVER.c.build_key == build_key)
        )
        is not None
    )


class ServerLimits(typing.NamedTuple):
    """What a server may hold; -1 is any number of shares, or of GiB."""

    shares: int = -1
    gigabytes: int = -1

    def allows(self, shares: int, gigabytes: int) -> bool:
        return (self.shares < 0 or shares <= self.shares) and (
            self.gigabytes < 0 or gigabytes <= self.gigabytes
        )


NO_LIMITS = ServerLimits()


def list_suitable(
    session: Session,
    host: str,
    subnet_ids: Collection[str],
    size: int,
    limits: ServerLimits = NO_LIMITS,
    *,
    encryption_key_ref: str | None = None,
) -> list[str]:
    """Active servers of a back end that may have a share of this size.

    They are in all of these subnets. Those with the most shares come
    first, so that others become idle.
    """
    count = sa.func.count(INSTANCE.c.id)
    gigabytes = sa.func.coalesce(sa.func.sum(SHARE.c.size), 0)
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
            SERVER.c.host == host.partition('#')[0],
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


def get_load(session: Session, server_id: str) -> tuple[int, int]:
    """How many instances are on a server, and their GiB."""
    count, size = session.rows(_LOAD, of_server=server_id)[0]
    return count, int(size)


def bind(
    session: Session,
    instance_id: str,
    server_id: str,
    size: int,
    limits: ServerLimits = NO_LIMITS,
) -> bool:
    """Put an instance without a server on one, if that may have it.

    The server must be active, and keep the limits with it. Whoever else
    puts an instance on it meanwhile waits, and counts this one.
    """
    if not session.run(_USE, server_id=server_id):
        return False
    count, gigabytes = get_load(session, server_id)
    if not limits.allows(count + 1, gigabytes + size):
        return False
    return attach(session, instance_id, server_id)


def attach(session: Session, instance_id: str, server_id: str) -> bool:
    """Put an instance on a server that the caller holds or has made."""
    return bool(
        session.run(_BIND, instance_id=instance_id, new_server=server_id)
    )


def find_server_id(session: Session, instance_id: str) -> str | None:
    """The server that an instance is on."""
    return session.value(
        sa.select(INSTANCE.c.share_server_id).where(
            INSTANCE.c.id == instance_id
        )
    )


def has_instances(session: Session, server_id: str) -> bool:
    """Whether any instance is on it; true while the caller holds it."""
    return session.value(_ANY_ON, of_server=server_id) is not None


def mark_idle(session: Session, server_id: str) -> bool:
    """Say since when nothing is on a server; whether it is so just now."""
    lock(session, server_id)
    return bool(session.run(_IDLE, server_id=server_id, now=session.now))


def mark_all_idle(session: Session, service_host: str) -> int:
    """The same for the active servers of a back end that nobody noted."""
    return session.run(
        sa.update(SERVER)
        .where(
            SERVER.c.host == service_host,
            SERVER.c.status == ServerStatus.ACTIVE,
            SERVER.c.idle_since.is_(None),
            ~sa.exists().where(INSTANCE.c.share_server_id == SERVER.c.id),
        )
        .values(idle_since=session.now)
    )


def list_idle(
    session: Session, service_host: str, before: datetime.datetime
) -> Sequence[sa.Row]:
    """Active servers that may be deleted and have been idle since then."""
    return session.rows(
        _FULL.where(
            SERVER.c.host == service_host,
            SERVER.c.status == ServerStatus.ACTIVE,
            SERVER.c.is_auto_deletable.is_(True),
            SERVER.c.idle_since <= before,
        ).order_by(SERVER.c.id)
    )


def disable_auto_delete(session: Session, server_id: str) -> None:
    """Have a server never be deleted but by a request."""
    session.run(
        sa.update(SERVER)
        .where(SERVER.c.id == server_id)
        .values(is_auto_deletable=False)
    )


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
    """Ids of the servers of a back end in one of these statuses."""
    return [
        row.id
        for row in session.rows(
            sa.select(SERVER.c.id)
            .where(
                SERVER.c.host == service_host,
                SERVER.c.status.in_(sorted(statuses)),
            )
            .order_by(SERVER.c.id)
        )
    ]


def delete_dependents(session: Session, server_id: str) -> None:
    """Remove what hangs on a server that is about to go.

    Addresses are not among it: the network plug-in takes them back.
    """
    for table in (DETAIL, OF_SUBNET):
        session.run(
            sa.delete(table).where(table.c.share_server_id == server_id)
        )
