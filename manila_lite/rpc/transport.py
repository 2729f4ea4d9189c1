"""The message transport: oslo.messaging with our settings.

oslo.messaging is imported inside functions: its import fixes for the life
of the process whether oslo.service uses threads or eventlet, and only
`cmd` may choose that, with `init_backend`.
"""

from collections.abc import Callable, Iterable, Mapping
import functools
import logging
import threading
import typing

from oslo_config import cfg
from oslo_db import exception as db_exc

from manila_lite import conf as options, context, exception
from manila_lite.rpc import listening

if typing.TYPE_CHECKING:
    from manila_lite.rpc import rabbit, receiving

LOG = logging.getLogger(__name__)

MOST_NOTED = 100
"""Unknown methods that are logged, since the start of a server."""

POOL_SIZE = 2
"""Default number of threads of a server: they only pass hints on."""

UNKNOWN = ('NoSuchMethod', 'UnsupportedVersion')
"""What oslo answers when a server does not know the method."""


def init_backend(*, threading: bool) -> None:
    """Choose threads or eventlet; call before any other oslo import."""
    from oslo_service import backend

    backend.init_backend(
        backend.BackendType.THREADING if threading else backend.BackendType.EVENTLET
    )


class ContextSerializer:
    """Sends the caller's context with a message, without the token.

    The receiver does not need the caller's token, and what is not sent
    cannot be read from a queue. Arguments are JSON already.
    """

    def serialize_context(
        self, ctx: context.RequestContext | None
    ) -> dict[str, typing.Any]:
        return {} if ctx is None else ctx.to_dict() | {'auth_token': None}

    def deserialize_context(
        self, values: dict[str, typing.Any]
    ) -> context.RequestContext | None:
        return context.RequestContext.from_dict(values) if values else None

    def serialize_entity(self, ctx: object, entity: object) -> typing.Any:
        return entity

    def deserialize_entity(self, ctx: object, entity: object) -> typing.Any:
        return entity


class Transport:
    """The connection of this process to others, by `transport_url`."""

    def __init__(self, conf: cfg.ConfigOpts, default_url: str = 'rabbit://'):
        import oslo_messaging

        self.refusals = listening.Refusals()
        self._brokers: rabbit.Brokers | None = None
        self._conf = conf
        self._oslo = oslo_messaging
        self._failures: tuple[type[Exception], ...] = (
            oslo_messaging.MessagingException,
            oslo_messaging.MessageUndeliverable,
        )
        register_global_options(conf)
        conf.register_opts(oslo_messaging.transport._transport_opts)
        conf.set_default('transport_url', default_url)
        try:
            self._transport = self._connect()
        except (
            oslo_messaging.InvalidTransportURL,
            oslo_messaging.DriverLoadFailure,
        ) as error:
            raise options.BadConfiguration(f'transport_url: {error}') from error

    def _connect(self) -> typing.Any:
        url = self._oslo.TransportURL.parse(self._conf)
        if url.transport in ('rabbit', 'kombu'):
            from manila_lite.rpc import rabbit

            self._failures += rabbit.prepare(self._conf)
            self._brokers = rabbit.Brokers(self._conf, url)
        return self._oslo.get_rpc_transport(
            self._conf, url, allowed_remote_exmods=[exception.__name__]
        )

    def client(
        self,
        topic: str,
        server: str | None = None,
        *,
        namespace: str | None = None,
        version: str = '1.0',
    ) -> 'RpcClient':
        """Return a client of any server of a topic, or of the one named."""
        target = self._oslo.Target(
            topic=topic, server=server, namespace=namespace, version=version
        )
        return RpcClient(
            self._oslo.get_rpc_client(
                self._transport,
                target,
                serializer=ContextSerializer(),
                retry=1,
                transport_options=self._oslo.TransportOptions(at_least_once=True),
            ),
            self._failures,
        )

    def serve(
        self, topic: str, server: str, endpoints: Iterable[typing.Any]
    ) -> listening.Server:
        """Return a server for a topic and server name, not yet started.

        Only exposed methods can be called: `contract.implements` exposes
        calls, but not durable methods.
        """
        endpoints = list(endpoints)
        for endpoint in endpoints:
            contract = getattr(endpoint, 'contract', None)
            if contract is not None:
                endpoint.target = self._oslo.Target(
                    namespace=contract.name, version=contract.version
                )
        build = functools.partial(self._oslo_server, topic, server, endpoints)
        return listening.Server(build, f'{topic}.{server}', self.refusals)

    def _oslo_server(
        self, topic: str, server: str, endpoints: list[typing.Any]
    ) -> typing.Any:
        oslo_server = self._oslo.get_rpc_server(
            self._transport,
            self._oslo.Target(topic=topic, server=server),
            endpoints,
            serializer=ContextSerializer(),
            access_policy=self._oslo.ExplicitRPCAccessPolicy,
        )
        dispatcher = oslo_server.dispatcher
        dispatcher.dispatch = self._note_unknown(dispatcher.dispatch)
        self._conf.set_default('executor_thread_pool_size', POOL_SIZE)
        return oslo_server

    def _note_unknown(
        self, dispatch: Callable[[typing.Any], typing.Any]
    ) -> Callable[[typing.Any], typing.Any]:
        """Log what this release does not know once, without a stack.

        A process of a newer one may ask for it; it gets the same answer.
        """
        unknown = (self._oslo.NoSuchMethod, self._oslo.UnsupportedVersion)
        noted: set[str] = set()
        # Messages are handled in several threads; the first one logs before
        # another one answers.
        lock = threading.Lock()

        def note(method: str, error: Exception) -> None:
            with lock:
                if method not in noted and len(noted) < MOST_NOTED:
                    noted.add(method)
                    LOG.info(
                        'This release does not know %s, which another '
                        'process asks for: %s',
                        method,
                        error,
                    )

        def dispatch_or_note(incoming: typing.Any) -> typing.Any:
            try:
                return dispatch(incoming)
            except unknown as error:
                note(str(incoming.message.get('method')), error)
                raise self._oslo.ExpectedException from error

        return dispatch_or_note

    def publisher(
        self, returned: Callable[[str, bytes], None]
    ) -> 'rabbit.Publisher | None':
        """Return what sends hints past oslo.messaging, if the broker has it.

        `returned` gets the address and the body of messages without a receiver.
        """
        if self._brokers is None:
            return None
        from manila_lite.rpc import rabbit

        return rabbit.Publisher(self._brokers, returned)

    @functools.cached_property
    def receiver(self) -> 'receiving.Receiver | None':
        """What receives hints past oslo.messaging, if the broker has it."""
        if self._brokers is None:
            return None
        from manila_lite.rpc import receiving

        return receiving.Receiver(self._brokers)

    def close(self) -> None:
        self._transport.cleanup()


def register_global_options(conf: cfg.ConfigOpts) -> None:
    """Register the options that oslo registers on the global conf only."""
    from oslo_messaging._metrics import client as metrics
    from oslo_messaging._tracing import client as tracing

    for group, needed in (
        ('oslo_messaging_metrics', metrics.oslo_messaging_metrics),
        ('oslo_messaging_tracing', tracing.oslo_messaging_tracing),
    ):
        conf.register_opts(needed, group)


class RpcClient:
    """Sends calls and casts to one target."""

    def __init__(self, client: typing.Any, failures: tuple[type[Exception], ...]):
        self._client = client
        self._failures = failures

    def to(self, server: str | None) -> 'RpcClient':
        """Return a client of one server of the topic; None: of any."""
        return RpcClient(self._client.prepare(server=server), self._failures)

    def call(
        self,
        ctx: context.RequestContext,
        method: str,
        args: Mapping[str, typing.Any],
        timeout: float,
    ) -> typing.Any:
        """Return the reply, or raise the error of ours that the server raised.

        Raises ServiceUnavailable when no server listens or replies in
        time, or when the server cannot reach its database.
        """
        import oslo_messaging

        try:
            return self._client.prepare(timeout=timeout).call(ctx, method, **args)
        except oslo_messaging.RemoteError as error:
            if error.exc_type in UNKNOWN:
                raise exception.NewerReleaseNeeded(
                    method=method, where='The service that was asked'
                ) from error
            if error.exc_type in _database_outages():
                raise exception.ServiceUnavailable(
                    f'{method} found no database: {error.exc_type}'
                ) from error
            raise  # a fault of the server, not of the transport
        except exception.ManilaLiteError as error:
            raise _as_raised(error) from error
        except self._failures as error:
            raise exception.ServiceUnavailable(
                f'{method} was not answered: {error!r}'
            ) from error

    def cast(
        self,
        ctx: context.RequestContext | None,
        method: str,
        args: Mapping[str, typing.Any],
    ) -> None:
        """Send without waiting; raise ServiceUnavailable if not sent."""
        try:
            self._client.cast(ctx, method, **args)
        except self._failures as error:
            raise exception.ServiceUnavailable(
                f'{method} was not sent: {error!r}'
            ) from error


@functools.cache
def _database_outages() -> frozenset[str]:
    """The classes, by name, that oslo sends as errors of its own."""
    found = [db_exc.DBConnectionError, db_exc.DBDeadlock]
    for one in found:  # grows on the way
        found += one.__subclasses__()
    return frozenset(one.__name__ for one in found)


def _as_raised(error: exception.ManilaLiteError) -> exception.ManilaLiteError:
    """Return the error as the server raised it.

    oslo derives a class from ours whose text is the remote traceback,
    which must not end up in a response.
    """
    original = type(error).__mro__[1]
    return original(error.msg, **error.params)
