"""The access rules of one share: requests, and their state."""

import pathlib
import typing

import sqlalchemy as sa

from manila_lite.context import RequestContext
from manila_lite.db.models import access, shares
from manila_lite.db.queries.access import share_rules
from manila_lite.db.queries.shares import shares as share_rows
from manila_lite.share.drivers.dummy import driver as dummy
from manila_lite.share.operations.access.targets import normalise

CTX = RequestContext(project_id='project', user_id='user', request_id='req-of-the-test')
RULE = access.AccessRule.__table__
INSTANCE = shares.ShareInstance.__table__


class RulesOnBackend:
    """What a dummy back end was asked about one instance of `process`.

    A subclass has `host` and `instance_id`, of a share or a snapshot.
    """

    process: typing.Any
    host: str
    instance_id: str

    @property
    def backend(self) -> str:
        """The name of the back end."""
        return self.host.partition('@')[2].partition('#')[0]

    @property
    def driver(self) -> dummy.DummyDriver:
        return self.process.driver(self.backend)

    @property
    def folder(self) -> pathlib.Path:
        """The folder with the state of the back end."""
        return pathlib.Path(self.process.folder) / 'dummy' / self.backend

    @property
    def calls(self) -> list[typing.Any]:
        """The driver calls about the instance, oldest first."""
        instance_id = self.instance_id
        return [
            call for call in self.driver.access_calls if call.subject_id == instance_id
        ]


class ShareRules(RulesOnBackend):
    """Access rules of a share of `process`.

    `process` has a db, the operations for access, and dummy back ends.
    """

    def __init__(self, process: typing.Any, share_id: str):
        self.process = process
        self.share_id = share_id

    @property
    def _operations(self) -> typing.Any:
        services = getattr(self.process, 'services', self.process)
        return services.access

    @property
    def target(self) -> sa.Row:
        return self.process.db.read(share_rows.get_target, self.share_id)

    @property
    def instance_id(self) -> str:
        return self.target.instance_id

    # Requests

    def allow(
        self,
        to: str = '10.0.0.1',
        level: str = 'rw',
        type: str = 'ip',
        **more: typing.Any,
    ) -> str:
        """Request a rule and return its id."""
        return self._operations.allow(
            CTX,
            self.target,
            access_type=type,
            access_to=to,
            target=normalise(type, to),
            access_level=level,
            **more,
        ).id

    def deny(self, access_id: str, **more: typing.Any) -> None:
        self._operations.deny(CTX, self.target, access_id, **more)

    def change(self, access_id: str, level: str) -> None:
        self._operations.change_level(CTX, self.target, access_id, level)

    # State

    @property
    def rows(self) -> dict[str, typing.Any]:
        """The rules of the only instance, by rule id."""
        return {
            row.id: row
            for row in self.process.db.read(
                share_rules.list_for_instance, self.instance_id
            )
        }

    @property
    def states(self) -> dict[str, str]:
        """The states of the rules, by access_to."""
        return {row.access_to: row.state for row in self.rows.values()}

    @property
    def known(self) -> int:
        """The number of rules of the share, mapped to an instance or not."""
        return self.process.db.read(
            lambda session: session.value(
                sa.select(sa.func.count())
                .select_from(RULE)
                .where(RULE.c.share_id == self.share_id)
            )
        )

    @property
    def status(self) -> str:
        """`access_rules_status` of the instance."""
        return self.process.db.read(
            lambda session: session.value(
                sa.select(INSTANCE.c.access_rules_status).where(
                    INSTANCE.c.share_id == self.share_id
                )
            )
        )

    @property
    def host(self) -> str:
        return self.target.host

    @property
    def clients(self) -> dict[str, str]:
        """The levels of the clients that the back end allows, by client."""
        found = dummy.access_inventory(self.folder).get(self.instance_id, set())
        return {to: level for _, to, level in found}
