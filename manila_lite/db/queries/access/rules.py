"""Rows of access rules, of shares and of snapshots.

A rule belongs to a share or a snapshot. Each instance of that has a mapping
with the state of the rule there, and says whether its rules on the back end
may differ from ours.
"""

from collections.abc import Collection, Sequence
import typing

from oslo_db import exception as db_exc
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.rows import AccessRuleRow
from manila_lite.db.session import Session
from manila_lite.states.machine import Machine


class RuleTables:
    """The rules, mappings and instances of one kind of resource.

    `instance_column` is the column of a mapping that names its instance, and
    `machine` has the states of mappings. `selected` selects each mapping as
    an `AccessRuleRow`.
    """

    def __init__(
        self,
        machine: Machine,
        rule: sa.Table,
        mapping: sa.Table,
        instance: sa.Table,
        *,
        instance_column: str,
        selected: sa.Select,
        exists: type[exception.ManilaLiteError],
    ):
        self.machine = machine
        self.instance_column = instance_column
        self._exists = exists
        self._of_instance = selected.where(
            mapping.c[instance_column] == sa.bindparam('of_instance')
        ).order_by(rule.c.created_at, rule.c.id)
        self._insert = sa.insert(rule)
        ids: sa.BindParameter[str] = sa.bindparam('rule_ids', expanding=True)
        self._lock_rules = (
            sa.select(rule.c.id)
            .where(rule.c.id.in_(ids))
            .order_by(rule.c.id)
            .with_for_update()
        )
        self._remove_unmapped = sa.delete(rule).where(
            rule.c.id.in_(ids), ~sa.exists().where(mapping.c.access_id == rule.c.id)
        )
        mark = sa.update(instance).where(instance.c.id == sa.bindparam('instance_id'))
        self._mark_stale = mark.values(access_stale=sa.bindparam('stale'))
        self._mark_sync_failed = mark.values(access_stale=True, access_sync_failed=True)
        self._clear_sync_failed = mark.values(access_sync_failed=False)

    def insert(self, session: Session, **values: object) -> None:
        """Insert a rule; raise an error if the same one exists."""
        try:
            session.run(self._insert, **values)
        except db_exc.DBDuplicateEntry:
            named: dict[str, typing.Any] = {
                'access_type': values['access_type'],
                'access': values['access_to'],
            }
            raise self._exists(**named) from None

    def list_for_instance(
        self, session: Session, instance_id: str
    ) -> Sequence[AccessRuleRow]:
        """Return the rules of an instance with their states, oldest first."""
        return session.rows(self._of_instance, of_instance=instance_id)

    def get_states(self, session: Session, instance_id: str) -> dict[str, str]:
        """Return the states of the rules of an instance, by rule."""
        return {
            row.id: row.state for row in self.list_for_instance(session, instance_id)
        }

    def lock_rules(self, session: Session, access_ids: Collection[str]) -> None:
        """Lock rules, so that others wait before they remove mappings of them."""
        if access_ids:
            session.rows(self._lock_rules, rule_ids=sorted(access_ids))

    def remove_unmapped(self, session: Session, access_ids: Collection[str]) -> None:
        """Delete those rules that no instance has any longer."""
        if access_ids:
            session.run(self._remove_unmapped, rule_ids=sorted(access_ids))

    def mark_stale(
        self, session: Session, instance_id: str, stale: bool = True
    ) -> None:
        """Record whether the rules on the back end may differ from ours."""
        session.run(self._mark_stale, instance_id=instance_id, stale=stale)

    def mark_sync_failed(self, session: Session, instance_id: str) -> None:
        """Record that the back end did not apply the rules.

        They are stale, and are sent again by the next pass.
        """
        session.run(self._mark_sync_failed, instance_id=instance_id)

    def clear_sync_failed(self, session: Session, instance_id: str) -> None:
        """Record that the back end has applied rules again.

        They may have become stale meanwhile.
        """
        session.run(self._clear_sync_failed, instance_id=instance_id)
