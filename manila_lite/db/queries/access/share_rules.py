"""Access rules of shares: the rows that requests and work act on."""

from collections.abc import Collection, Mapping
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.access.rules import RuleTables
from manila_lite.db.queries.columns import columns
from manila_lite.db.rows import (
    AccessRuleRow,
    InstanceHostRow,
    RuleInstanceRow,
    RuleMappingRow,
)
from manila_lite.db.session import Session
from manila_lite.db.tables import (
    INSTANCE,
    MAPPING,
    NETWORK,
    RULE,
    RULE_METADATA as METADATA,
)
from manila_lite.states.access_rule import ACCESS_RULE, RuleState
from manila_lite.states.share_instance import InstanceStatus
from manila_lite.states.share_network import NetworkStatus

_AT_ONCE = 500
"""The most ids named in one statement."""

RULES = RuleTables(
    ACCESS_RULE,
    RULE,
    MAPPING,
    INSTANCE,
    instance_column='share_instance_id',
    selected=sa.select(
        *columns(AccessRuleRow, RULE, MAPPING, mapping_id=MAPPING.c.id)
    ).select_from(MAPPING.join(RULE)),
    exists=exception.ShareAccessExists,
)
list_for_instance, mark_stale = RULES.list_for_instance, RULES.mark_stale


_LOCK_INSTANCES = (
    sa.select(
        *columns(
            RuleInstanceRow,
            INSTANCE,
            network_status=sa.select(NETWORK.c.status)
            .where(NETWORK.c.id == INSTANCE.c.share_network_id)
            .scalar_subquery(),
        )
    )
    .where(INSTANCE.c.share_id == sa.bindparam('of_share'))
    .order_by(INSTANCE.c.id)
    .with_for_update()
)
_HOSTS = (
    sa.select(INSTANCE.c.id, INSTANCE.c.host)
    .where(INSTANCE.c.share_id == sa.bindparam('of_share'))
    .order_by(INSTANCE.c.id)
)
_INSERT_METADATA = sa.insert(METADATA)
_MAPPED = (
    sa.select(*columns(RuleMappingRow, MAPPING, RULE))
    .select_from(MAPPING.join(RULE))
    .where(
        RULE.c.id == sa.bindparam('of_rule'),
        RULE.c.share_id == sa.bindparam('of_share'),
    )
)
_SET_LEVEL = (
    sa.update(RULE)
    .where(RULE.c.id == sa.bindparam('rule_id'))
    .values(access_level=sa.bindparam('new_level'), updated_at=sa.bindparam('now'))
)
_WITH_RULES = (
    sa.select(MAPPING.c.share_instance_id)
    .where(MAPPING.c.share_instance_id.in_(sa.bindparam('ids', expanding=True)))
    .distinct()
    .order_by(MAPPING.c.share_instance_id)
)
_STATUS_AND_STATES = (
    sa.select(INSTANCE.c.access_rules_status, MAPPING.c.state)
    .select_from(INSTANCE.outerjoin(MAPPING))
    .where(INSTANCE.c.id == sa.bindparam('of_instance'))
    .group_by(INSTANCE.c.access_rules_status, MAPPING.c.state)
)
ANY_UNSETTLED = sa.exists().where(
    MAPPING.c.share_instance_id == sa.bindparam('of_instance'),
    MAPPING.c.state != RuleState.ACTIVE,
)
"""Whether a rule of an instance is not active."""
NOT_SIMPLY_EDITABLE = sa.or_(
    INSTANCE.c.status != InstanceStatus.AVAILABLE,
    INSTANCE.c.replica_state.is_not(None),
    sa.and_(
        INSTANCE.c.share_network_id.is_not(None),
        ~sa.exists().where(
            NETWORK.c.id == INSTANCE.c.share_network_id,
            NETWORK.c.status == NetworkStatus.ACTIVE,
        ),
    ),
)
"""Whether a look at all instances decides if rules of the share may change."""
_SET_KEY = (
    sa.update(MAPPING)
    .where(
        MAPPING.c.access_id == sa.bindparam('of_rule'),
        MAPPING.c.share_instance_id == sa.bindparam('of_instance'),
    )
    .values(access_key=sa.bindparam('new_key'))
)
_LOCK_INSTANCE = (
    sa.select(INSTANCE.c.id)
    .where(INSTANCE.c.id == sa.bindparam('instance_id'))
    .with_for_update()
)


def lock_instances(session: Session, share_id: str) -> typing.Sequence[RuleInstanceRow]:
    """Lock the instances of a share and return them."""
    return session.rows(_LOCK_INSTANCES, of_share=share_id)


def list_instance_hosts(
    session: Session, share_id: str
) -> typing.Sequence[InstanceHostRow]:
    """Return the current ids and hosts of the instances, in id order."""
    return session.rows(_HOSTS, of_share=share_id)


def insert(
    session: Session, values: Mapping[str, object], metadata: Mapping[str, str]
) -> None:
    """Insert a rule of a share; raises ShareAccessExists."""
    RULES.insert(session, **values)
    session.run_many(
        _INSERT_METADATA,
        [
            {'access_id': values['id'], 'key': key, 'value': value}
            for key, value in metadata.items()
        ],
    )


def list_mappings(
    session: Session, share_id: str, access_id: str
) -> typing.Sequence[RuleMappingRow]:
    """Return the level of a rule and its state on each instance.

    Raises ShareAccessNotFound if the share has no such rule.
    """
    rows = session.rows(_MAPPED, of_share=share_id, of_rule=access_id)
    if not rows:
        raise exception.ShareAccessNotFound(access_id=access_id)
    return rows


def set_level(session: Session, access_id: str, level: str) -> None:
    session.run(_SET_LEVEL, rule_id=access_id, new_level=level, now=session.now)


def list_instances_with_rules(
    session: Session, instance_ids: Collection[str]
) -> list[str]:
    """Return the ids of those instances that have rules."""
    return [
        row.share_instance_id
        for row in session.rows(_WITH_RULES, ids=sorted(instance_ids))
    ]


def get_status_and_states(session: Session, instance_id: str) -> tuple[str, set[str]]:
    """Return `access_rules_status` and the set of states of the rules."""
    rows = session.rows(_STATUS_AND_STATES, of_instance=instance_id)
    if not rows:
        raise exception.ShareInstanceNotFound(share_instance_id=instance_id)
    return rows[0].access_rules_status, {
        row.state for row in rows if row.state is not None
    }


def set_access_keys(
    session: Session, instance_id: str, keys: Mapping[str, str | None]
) -> None:
    """Store the access keys that a driver returned, by rule id."""
    session.run_many(
        _SET_KEY,
        [
            {'of_rule': access_id, 'of_instance': instance_id, 'new_key': key}
            for access_id, key in sorted(keys.items())
        ],
    )


def mark_all_stale(session: Session, instance_ids: Collection[str]) -> None:
    """Record that the rules of these instances may differ on back ends."""
    ids = sorted(instance_ids)
    for begin in range(0, len(ids), _AT_ONCE):
        session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.id.in_(ids[begin : begin + _AT_ONCE]))
            .values(access_stale=True)
        )


def lock_instance(session: Session, instance_id: str) -> None:
    """Lock an instance until the transaction ends."""
    session.rows(_LOCK_INSTANCE, instance_id=instance_id)
