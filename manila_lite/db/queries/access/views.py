"""Access rules as users see them: one rule, or those of a share.

A rule is shown with the worst of its states on the instances of its
share. A list takes one statement for the rules joined with their states,
one for their metadata and one for the locks that hide rules.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import datetime
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.access import locks
from manila_lite.db.queries.metadata import MetadataTable, has_pairs
from manila_lite.db.rows import AccessRuleTarget, VisibilityLockRow
from manila_lite.db.session import Session
from manila_lite.db.tables import INSTANCE, MAPPING, RULE, RULE_METADATA, SHARE
from manila_lite.states.access_rule import STATES_BY_RANK, aggregate_status
from manila_lite.states.share_replica import ReplicaState

METADATA = MetadataTable(RULE_METADATA, 'access_id', RULE)

_RANK = {state: number for number, state in enumerate(STATES_BY_RANK)}

_SHOWN = sa.select(
    RULE.c.id,
    RULE.c.share_id,
    RULE.c.access_type,
    RULE.c.access_to,
    RULE.c.access_level,
    MAPPING.c.state,
    MAPPING.c.access_key,
    RULE.c.created_at,
    RULE.c.updated_at,
    INSTANCE.c.access_rules_status,
    INSTANCE.c.status,
    INSTANCE.c.replica_state,
).select_from(
    RULE.join(MAPPING).join(INSTANCE, INSTANCE.c.id == MAPPING.c.share_instance_id)
)
_ONE = (
    _SHOWN.add_columns(SHARE.c.project_id, SHARE.c.user_id, SHARE.c.is_public)
    .join(SHARE, SHARE.c.id == RULE.c.share_id)
    .where(RULE.c.id == sa.bindparam('access_id'))
)
_OF_SHARE = RULE.c.share_id == sa.bindparam('of_share')
_METADATA_OF_SHARE = (
    sa.select(RULE_METADATA.c.access_id, RULE_METADATA.c.key, RULE_METADATA.c.value)
    .select_from(RULE_METADATA.join(RULE))
    .where(_OF_SHARE)
)


@dataclasses.dataclass
class AccessRuleFilter:
    """Criteria for the rules of a share; empty fields match everything.

    `exact` are column values of rules; all pairs of `metadata` must be
    present.
    """

    exact: dict[str, str] = dataclasses.field(default_factory=dict)
    access_key: str | None = None
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)


class AccessRuleView(typing.NamedTuple):
    """A rule with its state aggregated over all instances."""

    id: str
    share_id: str
    access_type: str
    access_to: str
    access_level: str
    state: str
    access_key: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


class AccessRuleListing(typing.NamedTuple):
    """Rules to show, with their metadata and locks by rule id.

    `locks` are those that hide the rules; `rules_status` is aggregated
    over the instances of the share.
    """

    rules: list[AccessRuleView]
    rules_status: str
    metadata: dict[str, dict[str, str]]
    locks: dict[str, list[VisibilityLockRow]]


def get_target(session: Session, access_id: str) -> AccessRuleTarget:
    """Return what authorization needs; raises ShareAccessNotFound."""
    row = session.first(_ONE, access_id=access_id)
    if row is None:
        raise exception.ShareAccessNotFound(access_id=access_id)
    return row


def get(session: Session, access_id: str) -> AccessRuleListing:
    """Return one rule; raises ShareAccessNotFound."""
    rows = session.rows(_ONE, access_id=access_id)
    if not rows:
        raise exception.ShareAccessNotFound(access_id=access_id)
    hiding = locks.list_for_resource(session, access_id, locks.ResourceAction.SHOW)
    return AccessRuleListing(
        merge_instances(rows),
        _status_of(rows),
        {access_id: METADATA.get(session, access_id)},
        {access_id: list(hiding)} if hiding else {},
    )


def list_for_share(
    session: Session, share_id: str, criteria: AccessRuleFilter | None = None
) -> AccessRuleListing:
    """Return the rules of a share, oldest first."""
    conditions = _conditions(criteria or AccessRuleFilter())
    rows = session.rows(
        _SHOWN.where(_OF_SHARE, *conditions).order_by(RULE.c.created_at, RULE.c.id),
        of_share=share_id,
    )
    metadata: dict[str, dict[str, str]] = {}
    for access_id, key, value in session.rows(
        _METADATA_OF_SHARE.where(*conditions), of_share=share_id
    ):
        metadata.setdefault(access_id, {})[key] = value
    return AccessRuleListing(
        merge_instances(rows),
        _status_of(rows),
        metadata,
        locks.list_hiding_locks(session, share_id),
    )


def merge_instances(rows: Sequence[sa.Row]) -> list[AccessRuleView]:
    """Merge the rows of each rule on several instances, in order.

    The key is that of the active replica: replicas on several clusters have a key each.
    """
    found: dict[str, AccessRuleView] = {}
    for row in rows:
        rule = AccessRuleView(*row[: len(AccessRuleView._fields)])
        other = found.get(rule.id)
        if other is not None:
            first, second = other.access_key, rule.access_key
            if row.replica_state == ReplicaState.ACTIVE:
                first, second = second, first
            rule = other._replace(
                state=min(other.state, rule.state, key=_RANK.__getitem__),
                access_key=first or second,
            )
        found[rule.id] = rule
    return list(found.values())


def _status_of(rows: Iterable[sa.Row]) -> str:
    return aggregate_status((row.status, row.access_rules_status) for row in rows)


def _conditions(criteria: AccessRuleFilter) -> list[sa.ColumnElement]:
    found: list[sa.ColumnElement] = [
        RULE.c[name] == value for name, value in criteria.exact.items()
    ]
    if criteria.access_key is not None:
        with_key = MAPPING.alias()
        found.append(
            sa.exists().where(
                with_key.c.access_id == RULE.c.id,
                with_key.c.access_key == criteria.access_key,
            )
        )
    if criteria.metadata:
        of_rule = RULE_METADATA.alias()
        found.append(
            has_pairs(
                RULE.c.id,
                of_rule.c.access_id,
                of_rule.c.key,
                of_rule.c.value,
                criteria.metadata,
                correlated=True,
            )
        )
    return found
