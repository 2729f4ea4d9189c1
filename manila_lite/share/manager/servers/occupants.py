"""What is put on share servers: new shares and new share groups.

Each knows what it demands of its server, how the driver chooses one for it,
and which row names the server then.
"""

import abc
from collections.abc import Mapping, Sequence
import typing

from manila_lite.db.queries.servers import share_servers
from manila_lite.db.queries.servers.server_load import NO_LIMITS, ServerLimits
from manila_lite.db.session import Session
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import group_view, server_view, share_view
from manila_lite.share.manager.driver_view.group_view import CloneSource, LoadedGroup
from manila_lite.share.manager.driver_view.server_view import LoadedServer
from manila_lite.share.manager.driver_view.share_view import (
    LoadedInstance,
    NameTemplates,
)
from manila_lite.share.manager.endpoint import is_on
from manila_lite.share.manager.guarded_driver import driver_context
from manila_lite.share.manager.servers import demand as demands
from manila_lite.share.manager.servers.demand import (
    ServerDemand,
    key_for_driver,
    no_server,
)

_ROOM_FOR_GROUP = 1
"""The GiB that a server needs to have left for the shares of a new group."""


class Offer(typing.NamedTuple):
    """The servers that the driver may choose from.

    `known` are the ids of all suitable servers, of which `candidates` may be
    a part. `group` is that of a share whose server is decided: it is on the
    server of its group, or cannot be created.
    """

    candidates: list[LoadedServer]
    known: set[str]
    demand: ServerDemand
    group: LoadedGroup | None = None


class Occupant(abc.ABC):
    """A new share or share group, as read for the work that creates it."""

    resource: typing.ClassVar[str]
    id: str
    server: LoadedServer | None
    share_network_id: str | None

    @abc.abstractmethod
    def demand(self, session: Session, service_host: str) -> ServerDemand:
        """Return what it demands of its server."""

    def offer(self, session: Session, service_host: str, limits: ServerLimits) -> Offer:
        """Return the servers that it may be put on; may raise no_server."""
        demand = self.demand(session, service_host)
        ids = demand.list_suitable(session, limits)
        return self._offer(session, ids, demand)

    def _offer(
        self, session: Session, ids: Sequence[str], demand: ServerDemand
    ) -> Offer:
        servers = server_view.load_servers(session, ids)
        return Offer([servers[id] for id in ids if id in servers], set(ids), demand)

    @abc.abstractmethod
    def choose(
        self, driver: ShareDriver, offer: Offer
    ) -> Mapping[str, typing.Any] | None:
        """Let the driver choose; None lets another server be built."""

    @abc.abstractmethod
    def bind(self, session: Session, server_id: str, limits: ServerLimits) -> bool:
        """Put it on an active server with room; False if it has none."""

    @abc.abstractmethod
    def attach(self, session: Session, server_id: str) -> bool:
        """Put it on a server that is being built for it."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict[str, typing.Any]:
        """The metadata for `setup_server`, if a server is built for it."""


class NewShare(Occupant):
    """A new share; `source` is the snapshot it is created from, if any."""

    resource = 'share instance'

    def __init__(
        self, instance: LoadedInstance, source: CloneSource | None, names: NameTemplates
    ):
        self.instance, self.source, self.names = instance, source, names
        self.id = instance.row.id
        self.server = instance.server
        self.share_network_id = instance.row.share_network_id

    def demand(self, session: Session, service_host: str) -> ServerDemand:
        row = self.instance.row
        return demands.demand_of(
            session, service_host, row, row.size, demands.key_of_server(session, row)
        )

    def offer(self, session: Session, service_host: str, limits: ServerLimits) -> Offer:
        if self._is_on_server_of_source(service_host):
            limits = NO_LIMITS  # it has no other server, full or not
        return super().offer(session, service_host, limits)

    def _offer(
        self, session: Session, ids: Sequence[str], demand: ServerDemand
    ) -> Offer:
        allowed = list(ids)
        if self.source is not None and self._is_on_server_of_source(
            demand.service_host
        ):
            # A snapshot is accessible on its own share server only.
            server_id = self.source.share.row.share_server_id
            allowed = [id for id in allowed if id == server_id]
            if not allowed:
                raise no_server(
                    'the share server of the snapshot cannot take the share'
                )
        group = self._group(session)
        if group is not None:
            server_id = group.row.share_server_id
            allowed = [id for id in allowed if id == server_id]
            if not allowed:
                raise no_server(
                    'the share server of the share group cannot take the share'
                )
        return (
            super()
            ._offer(session, allowed, demand)
            ._replace(known=set(ids), group=group)
        )

    def _is_on_server_of_source(self, service_host: str) -> bool:
        """Whether it is created from a snapshot of this back end."""
        if self.source is None:
            return False
        row = self.source.share.row
        return row.share_server_id is not None and is_on(row, service_host)

    def _group(self, session: Session) -> LoadedGroup | None:
        group_id = self.instance.row.share_group_id
        if group_id is None:
            return None
        return group_view.load_group(session, group_id)

    def choose(
        self, driver: ShareDriver, offer: Offer
    ) -> Mapping[str, typing.Any] | None:
        group: dict[str, typing.Any] = {}
        if offer.group is not None:
            group = {'share_group': offer.group.for_driver}
        chosen = driver.choose_share_server_compatible_with_share(
            driver_context(),
            [server_view.server_for_driver(each) for each in offer.candidates],
            share_view.share_for_driver(self.instance, self.names.share),
            snapshot=self.source
            and group_view.source_for_driver(self.source, self.names),
            **group,
            **key_for_driver(offer.demand.encryption_key_ref),
        )
        if chosen is None and offer.group is not None:
            raise no_server(
                'the driver does not put the share on the share server of '
                'its share group'
            )
        return chosen

    def bind(self, session: Session, server_id: str, limits: ServerLimits) -> bool:
        row = self.instance.row
        if self.source and server_id == self.source.share.row.share_server_id:
            limits = NO_LIMITS
        return share_servers.bind(session, self.id, server_id, row.size, limits)

    def attach(self, session: Session, server_id: str) -> bool:
        return share_servers.attach(session, self.id, server_id)

    @property
    def metadata(self) -> dict[str, typing.Any]:
        row = self.instance.row
        return {'request_host': row.host, 'share_type_id': row.share_type_id}


class StayingShare(NewShare):
    """A share that moves within its back end and stays on its server.

    The server keeps it even if it has more shares than its limits allow.
    """

    def __init__(self, instance: LoadedInstance, server_id: str, names: NameTemplates):
        super().__init__(instance, None, names)
        self.server_id = server_id

    def offer(self, session: Session, service_host: str, limits: ServerLimits) -> Offer:
        return super().offer(session, service_host, NO_LIMITS)

    def _offer(
        self, session: Session, ids: Sequence[str], demand: ServerDemand
    ) -> Offer:
        if self.server_id not in ids:
            raise no_server(f'the share cannot stay on share server {self.server_id}')
        return super()._offer(session, ids, demand)

    def choose(
        self, driver: ShareDriver, offer: Offer
    ) -> Mapping[str, typing.Any] | None:
        return {'id': self.server_id}

    def bind(self, session: Session, server_id: str, limits: ServerLimits) -> bool:
        return super().bind(session, server_id, NO_LIMITS)


class NewGroup(Occupant):
    """A new share group.

    A group that is created from a snapshot is on the server of its source
    from the beginning.
    """

    resource = 'share group'

    def __init__(self, group: LoadedGroup):
        self.group = group
        self.id = group.row.id
        self.server = group.server
        self.share_network_id = group.row.share_network_id

    def demand(self, session: Session, service_host: str) -> ServerDemand:
        return demands.demand_of(session, service_host, self.group.row, _ROOM_FOR_GROUP)

    def choose(
        self, driver: ShareDriver, offer: Offer
    ) -> Mapping[str, typing.Any] | None:
        return driver.choose_share_server_compatible_with_share_group(
            driver_context(),
            [server_view.server_for_driver(each) for each in offer.candidates],
            self.group.for_driver,
        )

    def bind(self, session: Session, server_id: str, limits: ServerLimits) -> bool:
        return share_servers.bind_group(
            session, self.id, server_id, _ROOM_FOR_GROUP, limits
        )

    def attach(self, session: Session, server_id: str) -> bool:
        return share_servers.attach_group(session, self.id, server_id)

    @property
    def metadata(self) -> dict[str, typing.Any]:
        return {'request_host': self.group.row.host}
