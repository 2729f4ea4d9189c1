"""Shares as users see them: a page, or one share, with its children.

A share is shown with its displayed instance. A page takes one statement
for the shares joined with their instances, types and zones, and one for
their metadata, which repeats the page as a subquery.

Shares on a share network or a share server are found by the index of these:
the list of shares finds few among all shares of a deployment by reading all
of them, if the database does not know that they are few.
"""

import collections
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import dataclasses
import enum
import typing

import sqlalchemy as sa

from manila_lite.db.queries import pages
from manila_lite.db.queries.columns import columns
from manila_lite.db.queries.metadata import has_pairs
from manila_lite.db.queries.shares import instance_views
from manila_lite.db.queries.shares.instance_views import instance_rank
from manila_lite.db.queries.shares.shares import METADATA
from manila_lite.db.rows import Page, ShareOnRow
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    EXPORT,
    INSTANCE,
    SHARE,
    SHARE_METADATA,
    SPEC,
    TYPE,
    ZONE,
)
from manila_lite.states import share_instance as states
from manila_lite.states.access_rule import aggregate_status
from manila_lite.states.share_instance import HIDDEN_FROM_TENANTS, InstanceStatus
from manila_lite.states.share_replica import ReplicaState

_NOT_HIDDEN = INSTANCE.c.status.not_in(sorted(states.HIDDEN_FROM_TENANTS))
# A scalar subquery is evaluated share by share until the page is full; for
# an EXISTS, MariaDB materializes the instances of all shares first.
_IS_VISIBLE = (
    sa.select(INSTANCE.c.id)
    .where(INSTANCE.c.share_id == SHARE.c.id, _NOT_HIDDEN)
    .limit(1)
    .correlate(SHARE)
    .scalar_subquery()
    .is_not(None)
)
# Filters apply to the instance that the share is shown with.
_IS_DISPLAYED = sa.or_(
    SHARE.c.replication_type.is_(None),
    INSTANCE.c.id == instance_views.select_column('id'),
)

SHARE_COLUMNS = frozenset(column.name for column in SHARE.c)
INSTANCE_SORT_KEYS = frozenset(
    {
        'host',
        'status',
        'share_type_id',
        'share_network_id',
        'share_server_id',
        'availability_zone_id',
    }
)

# Columns of instances that have an index, those with the most values first.
_INDEXED = (
    'mount_point_name',
    'share_server_id',
    'share_network_id',
    'host',
    'status',
    'share_type_id',
)


@dataclasses.dataclass
class ShareFilter:
    """Criteria for shares; empty fields match everything.

    `share` and `instance` are exact column values of the share and of its
    displayed instance; `like` are substrings; all pairs of `metadata` and
    `extra_specs` must be present. Shares hidden by deferred deletion are
    left out unless `include_hidden` is set. Export locations match if they
    are for everyone, or with `admin_exports`. With `ids` only these shares
    are looked at.
    """

    project_id: str | None = None
    include_public: bool = False
    include_hidden: bool = False
    share: dict[str, object] = dataclasses.field(default_factory=dict)
    instance: dict[str, object] = dataclasses.field(default_factory=dict)
    like: dict[str, str] = dataclasses.field(default_factory=dict)
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    extra_specs: dict[str, str] = dataclasses.field(default_factory=dict)
    zone: str | None = None
    export_id: str | None = None
    export_path: str | None = None
    admin_exports: bool = True
    ids: Collection[str] | None = None


_SUMMARY = (SHARE.c.id, SHARE.c.display_name.label('name'), SHARE.c.created_at)
_SHOWN = sa.select(
    *(pages.to_show(column) for column in SHARE.c if column is not SHARE.c.updated_at),
    INSTANCE.c.status,
    INSTANCE.c.host,
    INSTANCE.c.progress,
    INSTANCE.c.access_rules_status,
    INSTANCE.c.replica_state,
    INSTANCE.c.share_network_id,
    INSTANCE.c.share_server_id,
    INSTANCE.c.share_type_id,
    INSTANCE.c.encryption_key_ref,
    TYPE.c.name.label('share_type_name'),
    ZONE.c.name.label('availability_zone'),
)
_namedtuple: Callable[..., typing.Any] = collections.namedtuple
_NewShare = _namedtuple('_NewShare', _SHOWN.selected_columns.keys())


def _joined(these: sa.FromClause = SHARE) -> sa.FromClause:
    return (
        these.outerjoin(INSTANCE, INSTANCE.c.share_id == SHARE.c.id)
        .outerjoin(TYPE, TYPE.c.id == INSTANCE.c.share_type_id)
        .outerjoin(ZONE, ZONE.c.id == INSTANCE.c.availability_zone_id)
    )


_OLDEST_FIRST = (INSTANCE.c.created_at, INSTANCE.c.id)
# Each instance once for each key of the metadata.
_ONE = (
    _SHOWN.add_columns(INSTANCE.c.id, SHARE_METADATA.c.key, SHARE_METADATA.c.value)
    .select_from(
        _joined().outerjoin(SHARE_METADATA, SHARE_METADATA.c.share_id == SHARE.c.id)
    )
    .where(SHARE.c.id == sa.bindparam('share_id'))
    .order_by(*_OLDEST_FIRST, SHARE_METADATA.c.key)
)
_INSTANCE_ID, _KEY, _VALUE = -3, -2, -1
_EXPORTS = (
    sa.select(INSTANCE.c.share_id, EXPORT.c.path)
    .select_from(EXPORT.join(INSTANCE))
    .where(
        INSTANCE.c.status == InstanceStatus.AVAILABLE,
        sa.or_(
            INSTANCE.c.replica_state.is_(None),
            INSTANCE.c.replica_state == ReplicaState.ACTIVE,
        ),
    )
    .order_by(EXPORT.c.created_at, EXPORT.c.path)
)
_EXPORTS_OF_ONE = _EXPORTS.where(INSTANCE.c.share_id == sa.bindparam('share_id'))


class Exports(enum.Enum):
    """The export paths to include: none, those of users, or all."""

    NONE = enum.auto()
    OPEN = enum.auto()
    ALL = enum.auto()


def get(session: Session, share_id: str, *, exports: Exports) -> pages.Listing:
    """Return one share, or no rows if it does not exist."""
    found = session.rows(_ONE, share_id=share_id)
    if not found:
        return pages.Listing([], {})
    instances, metadata = found, {}
    if found[0][_KEY] is not None:
        instances = list({row[_INSTANCE_ID]: row for row in found}.values())
        metadata = {row[_KEY]: row[_VALUE] for row in found}
    rows, sums = select_displayed(instances)
    paths = _paths(session, exports, _EXPORTS_OF_ONE, share_id=share_id)
    return pages.Listing(
        rows, {'metadata': {share_id: metadata}, 'exports': paths, **sums}
    )


def of_new(
    share: Mapping[str, typing.Any],
    instance: Mapping[str, typing.Any],
    metadata: Mapping[str, str],
    **names: str | None,
) -> pages.Listing:
    """Return what `get` would, of rows with these values of their columns.

    `names` are those of the type, `share_type_name`, and of the zone.
    """
    known = {**instance, **share, **names}
    row = _NewShare(**{name: known.get(name) for name in _NewShare._fields})
    return pages.Listing(
        [row],
        {
            'metadata': {row.id: dict(metadata)},
            'exports': {},
            'replicated': {},
            'rules_status': {},
        },
    )


def list_page(
    session: Session,
    criteria: ShareFilter,
    page: Page,
    *,
    exports: Exports | None = None,
    count: bool = False,
) -> pages.Listing:
    """Return ids and names of the shares of a page.

    With `exports`, return everything that the detailed view shows.
    """
    criteria = _checked(session, criteria)
    total = _check_length(session, criteria, page, count)
    if exports is None:
        found = session.rows(_page(criteria, page, *_SUMMARY))
        return pages.Listing(found, {}, total)
    ids = _page(criteria, page, SHARE.c.id).subquery()
    # An outer join from the page: for an inner join SQLite would scan all
    # shares if that saves it from sorting the page.
    these = ids.outerjoin(SHARE, SHARE.c.id == ids.c.id)
    found = session.rows(
        _SHOWN.select_from(_joined(these)).order_by(
            *pages.order(page, SHARE, _sort_value(page)), *_OLDEST_FIRST
        )
    )
    if not found:  # to find nothing again could take as long
        return pages.Listing([], {}, total)
    rows, sums = select_displayed(found)
    metadata = METADATA.list_of_page(session, ids)
    paths = _paths(
        session, exports, _EXPORTS.join(ids, ids.c.id == INSTANCE.c.share_id)
    )
    return pages.Listing(rows, {'metadata': metadata, 'exports': paths, **sums}, total)


def select_displayed(
    rows: Sequence[sa.Row],
) -> tuple[Sequence[sa.Row], dict[str, dict]]:
    """Return the displayed row of each share, in order, and aggregates.

    The aggregates are by share id, for shares with several instances:
    whether these are replicas (`replicated`), and their aggregated
    `access_rules_status` (`rules_status`).
    """
    if pages.is_unique(rows):
        return rows, {'replicated': {}, 'rules_status': {}}
    copies: dict[str, int] = {}
    statuses: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        copies[row.id] = copies.get(row.id, 0) + bool(row.replica_state)
        statuses.setdefault(row.id, set()).add((row.status, row.access_rules_status))
    return pages.choose_first(rows, instance_rank), {
        'replicated': {id: number > 1 for id, number in copies.items()},
        'rules_status': {id: aggregate_status(found) for id, found in statuses.items()},
    }


def _checked(session: Session, criteria: ShareFilter) -> ShareFilter:
    """Return the criteria with the ids of shares, if these are few.

    Those of one project are read from an index of their own. Raises InvalidInput
    for a search in a list of all projects that is too long.
    """
    if criteria.project_id is not None:
        return criteria
    ids = pages.find_few(session, _selections(criteria))
    if ids is not None:
        return dataclasses.replace(criteria, ids=ids)
    if criteria.like:
        others = dataclasses.replace(criteria, like={})
        pages.check_search(session, SHARE, _conditions(others))
    return criteria


def _selections(criteria: ShareFilter) -> Iterator[sa.Select]:
    """Yield the ids of the shares that meet one criterion, by an index."""
    for name in ('id', 'path'):
        value = getattr(criteria, f'export_{name}')
        if value is not None:
            yield (
                sa.select(INSTANCE.c.share_id)
                .select_from(EXPORT.join(INSTANCE))
                .where(EXPORT.c[name] == value)
            )
    for name in _INDEXED:
        if name in criteria.instance:
            yield sa.select(INSTANCE.c.share_id).where(
                INSTANCE.c[name] == criteria.instance[name]
            )


def _page(criteria: ShareFilter, page: Page, *columns: sa.ColumnElement) -> sa.Select:
    lists = _lists(criteria)
    key = _sort_value(page)
    if len(lists) == 1:
        return pages.select_page(sa.select(*columns).where(*lists[0]), page, SHARE, key)
    statements = [
        sa.select(*columns, key.label('sort_value')).where(*conditions)
        for conditions in lists
    ]
    heads = (
        pages.select_head(statement, page, SHARE, key, statements).subquery()
        for statement in statements
    )
    # SQLite has no parentheses around selections with a limit.
    union = sa.union_all(*(sa.select(head) for head in heads)).subquery()
    return pages.limit_to_page(
        sa.select(*(union.c[column.name] for column in columns)).order_by(
            *pages.order(page, union, union.c.sort_value)
        ),
        page,
    )


def _sort_value(page: Page) -> sa.ColumnElement:
    # A subquery gives one value for each share: with a join, a share with
    # several instances would appear several times in the page.
    return (
        instance_views.select_column(page.sort_key)
        if page.sort_key in INSTANCE_SORT_KEYS
        else SHARE.c[page.sort_key]
    )


def _check_length(
    session: Session, criteria: ShareFilter, page: Page, count: bool
) -> int | None:
    return pages.check_length(session, page, SHARE, *_lists(criteria), count=count)


def _lists(criteria: ShareFilter) -> list[list[sa.ColumnElement]]:
    """Return the conditions of lists that together have all matches.

    The shares of a project and the public ones of others are two lists,
    since each is in the order of an index: databases sort the matches of
    "own or public".
    """
    others = _conditions(criteria)
    if criteria.project_id is None:
        return [others]
    own = SHARE.c.project_id == criteria.project_id
    if not criteria.include_public:
        return [[own, *others]]
    return [[own, *others], [~own, SHARE.c.is_public == sa.true(), *others]]


def _conditions(criteria: ShareFilter) -> list[sa.ColumnElement]:
    """Return the conditions of all criteria except the project."""
    found: list[sa.ColumnElement] = [
        _equals(SHARE.c[name], value) for name, value in criteria.share.items()
    ]
    if criteria.ids is not None:
        found.append(SHARE.c.id.in_(sorted(criteria.ids)))
    found += [
        SHARE.c[name].contains(text, autoescape=True)
        for name, text in criteria.like.items()
    ]
    of_instance = [
        _equals(INSTANCE.c[name], value) for name, value in criteria.instance.items()
    ]
    if criteria.zone is not None:
        of_instance.append(
            INSTANCE.c.availability_zone_id.in_(
                sa.select(ZONE.c.id).where(
                    sa.or_(ZONE.c.name == criteria.zone, ZONE.c.id == criteria.zone)
                )
            )
        )
    if criteria.extra_specs:
        of_instance.append(
            has_pairs(
                INSTANCE.c.share_type_id,
                SPEC.c.share_type_id,
                SPEC.c.spec_key,
                SPEC.c.spec_value,
                criteria.extra_specs,
                correlated=False,
            )
        )
    if of_instance:
        of_instance.append(_IS_DISPLAYED)
        if not criteria.include_hidden:
            of_instance.append(_NOT_HIDDEN)
        found.append(_some_instance(*of_instance))
    elif not criteria.include_hidden:
        found.append(_IS_VISIBLE)
    if criteria.metadata:
        found.append(
            has_pairs(
                SHARE.c.id,
                SHARE_METADATA.c.share_id,
                SHARE_METADATA.c.key,
                SHARE_METADATA.c.value,
                criteria.metadata,
                correlated=criteria.project_id is not None,
            )
        )
    return found + _export_conditions(criteria)


def _export_conditions(criteria: ShareFilter) -> list[sa.ColumnElement]:
    asked = [
        EXPORT.c[name] == value
        for name, value in (('id', criteria.export_id), ('path', criteria.export_path))
        if value is not None
    ]
    if not asked:
        return []
    if not criteria.admin_exports:
        asked.append(EXPORT.c.is_admin_only.is_(False))
    return [_some_instance(EXPORT.c.share_instance_id == INSTANCE.c.id, *asked)]


def _some_instance(*conditions: sa.ColumnElement) -> sa.ColumnElement:
    """Return the condition that some instance of the share meets all."""
    return (
        sa.exists()
        .where(INSTANCE.c.share_id == SHARE.c.id, *conditions)
        .correlate(SHARE)
    )


def _equals(column: sa.Column, value: object) -> sa.ColumnElement:
    if value is False:
        # Most rows are False; this keeps the optimizer from leaving the
        # index that gives the order.
        return column.is_not(True)
    if value is True:
        return column.is_(True)
    return column == value


def _paths(
    session: Session, exports: Exports, statement: sa.Select, **params: object
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if exports is Exports.NONE:
        return found
    if exports is Exports.OPEN:
        statement = statement.where(EXPORT.c.is_admin_only.is_(False))
    for share_id, path in session.rows(statement, **params):
        found.setdefault(share_id, []).append(path)
    return found


def _on(column: sa.Column) -> sa.Select:
    these = (
        sa.select(INSTANCE.c.share_id, INSTANCE.c.status)
        .where(
            column == sa.bindparam('of'),
            INSTANCE.c.status.not_in(sorted(HIDDEN_FROM_TENANTS)),
        )
        .order_by(INSTANCE.c.id)
        .limit(sa.bindparam('most', type_=sa.Integer()))
        .subquery()
    )
    return (
        sa.select(*columns(ShareOnRow, SHARE, these, name=SHARE.c.display_name))
        .select_from(these.join(SHARE, SHARE.c.id == these.c.share_id))
        .order_by(SHARE.c.created_at.desc(), SHARE.c.id)
    )


_ON_NETWORK = _on(INSTANCE.c.share_network_id)
_ON_SERVER = _on(INSTANCE.c.share_server_id)


def list_on_network(
    session: Session, network_id: str, *, most: int
) -> Sequence[ShareOnRow]:
    """Return share instances on a network with their shares."""
    return session.rows(_ON_NETWORK, of=network_id, most=most)


def list_on_server(
    session: Session, server_id: str, *, most: int
) -> Sequence[ShareOnRow]:
    """Return share instances on a server with their shares."""
    return session.rows(_ON_SERVER, of=server_id, most=most)
