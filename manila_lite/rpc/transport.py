"""The message transport: oslo.messaging with our settings.

There are two kinds of message. The sender of a call waits for the reply.
A hint says that a work row is due; it may arrive late, twice or never.

oslo.messaging is imported inside functions: its import fixes for the life
of the process whether oslo.service uses threads or eventlet, and only
`cmd` may choose that, with `init_backend`.
"""

from collections.abc import Callable, Iterable, Mapping
import functools
import itertools
import logging
import math
import threading
import time
import typing

from oslo_config import cfg
from oslo_db import exception as db_exc

from manila_lite import conf as options, context, exception, metrics
from manila_lite.db import errors
from manila_lite.rpc import listening

LOG = logging.getLogger(__name__)

MOST_NOTED = 100
"""Unknown methods that are logged, since the start of a server."""

POOL_SIZE = 2
"""Default number of threads of a server: they only pass hints on."""

BATCH = 50
"""Hints in one message, at most."""

BATCHES_SINCE = 2
"""The release whose services know messages with several hints."""

RELEASES_KEPT = 30.0
"""Seconds for which the oldest release of a topic is not looked up again."""

RABBIT = 'oslo_messaging_rabbit'

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

    def serialize_entity(self, ctx: typing.Any, entity: typing.Any) -> typing.Any:
        return entity

    def deserialize_entity(self, ctx: typing.Any, entity: typing.Any) -> typing.Any:
        return entity


class Transport:
    """The connection of this process to others, by `transport_url`."""

    def __init__(self, conf: cfg.ConfigOpts, default_url: str = 'rabbit://'):
        import oslo_messaging

        self.refusals = listening.Refusals()
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
            self._failures += prepare_rabbit(self._conf)
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

    def close(self) -> None:
        self._transport.cleanup()


def prepare_rabbit(conf: cfg.ConfigOpts) -> tuple[type[Exception], ...]:
    """Use quorum queues, which survive a broker, unless configured.

    Hints need neither these nor the confirmation of the broker, but oslo has
    one kind of queue for all messages of a server, always asks for
    confirmation, and a queue cannot change its kind while a process of the
    previous release declares it. `HintSender` sends fewer messages instead.

    The queue manager stays off, and transient queues keep random names
    that expire: it would give two services of one program on one host the
    same reply queue, and each would take replies meant for the other.

    Returns the errors that oslo does not wrap: of a broker that cannot be
    reached, and of one that refuses a password or a virtual host.
    """
    from amqp import exceptions as amqp
    from kombu import exceptions as kombu

    # Kombu does so to connect; here, forked processes have it in common.
    from kombu.transport import pyamqp  # noqa: F401
    from oslo_messaging import opts

    conf.register_opts(dict(opts.list_opts())[RABBIT], RABBIT)
    if not conf[RABBIT].rabbit_ha_queues:
        conf.set_default('rabbit_quorum_queue', True, RABBIT)
        conf.set_default('rabbit_transient_quorum_queue', True, RABBIT)
    return kombu.KombuError, amqp.AMQPError


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


class HintSender:
    """Sends hints about due work to services, from one thread.

    `sent`, `failed` and `dropped` count hints since the start. A lost
    hint is no error: the sweep of the service finds the work a bit later.

    The broker confirms each message, which takes milliseconds. Hints for a
    queue that arrive meanwhile leave together in the next message, unless
    `oldest_release` tells of a service that knows only single hints.
    """

    LOG_INTERVAL = 60.0

    def __init__(
        self,
        transport: Transport,
        *,
        capacity: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
        oldest_release: Callable[[str, str | None], int | None] | None = None,
    ):
        self.sent = 0
        self.failed = 0
        self.dropped = 0
        self._transport = transport
        self._capacity = capacity
        self._clock = clock
        self._logged_at = -self.LOG_INTERVAL
        self._clients: dict[str, RpcClient] = {}
        self._oldest_release = oldest_release
        # Per topic, whether its services know batches, and until when.
        self._batching: dict[str, tuple[bool, float]] = {}
        # Per topic and queue, the ids in the order of their arrival.
        self._waiting: dict[tuple[str, str], dict[str, None]] = {}
        self._size = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def send(self, topic: str, queue: str, work_id: str) -> None:
        """Queue a hint for sending; never waits and never fails.

        A queue with the name of its topic means any server of the topic.
        """
        with self._changed:
            if work_id in self._waiting.get((topic, queue), ()):
                return
            if self._stopping or self._size >= self._capacity:
                self._drop(1)
                return
            self._waiting.setdefault((topic, queue), {})[work_id] = None
            self._size += 1
            # Started by the first hint, as a server may fork before that.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name='hints', daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def stop(self, timeout: float = 1.0) -> None:
        """Send queued hints for at most `timeout` seconds, drop the rest."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        with self._changed:
            self._drop(self._size)
            self._waiting.clear()
            self._size = 0

    def _drop(self, number: int) -> None:
        self.dropped += number
        metrics.HINTS_LOST.increment(by=number)

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            topic, queue, work_ids = batch
            if not work_ids:  # dropped in the meantime
                continue
            args: dict[str, typing.Any] = {'work_id': work_ids[0]}
            if work_ids[1:]:
                args['more'] = work_ids[1:]
            try:
                self._client(topic, queue).cast(None, 'hint', args)
                self.sent += len(work_ids)
                metrics.HINTS_SENT.increment(by=len(work_ids))
            except exception.ServiceUnavailable as error:
                self._note_failure(queue, error, len(work_ids))

    def _next(self) -> tuple[str, str, list[str]] | None:
        """Wait for hints; return what goes into the next message."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            if not self._waiting:
                return None
            (topic, queue), found = next(iter(self._waiting.items()))
            several = len(found) > 1
        # May ask the database, for which no sender waits.
        limit = BATCH if several and self._knows_batches(topic) else 1
        with self._changed:
            found = self._waiting.pop((topic, queue), {})
            taken = list(itertools.islice(found, limit))
            for work_id in taken:
                del found[work_id]
            if found:  # the other queues come first
                self._waiting[topic, queue] = found
            self._size -= len(taken)
        return topic, queue, taken

    def _knows_batches(self, topic: str) -> bool:
        if self._oldest_release is None:
            return True
        knows, until = self._batching.get(topic, (False, -math.inf))
        now = self._clock()
        if now >= until:
            try:
                oldest = self._oldest_release(topic, None)
                knows = oldest is None or oldest >= BATCHES_SINCE
            except errors.UNAVAILABLE:
                knows = False
            self._batching[topic] = (knows, now + RELEASES_KEPT)
        return knows

    def _client(self, topic: str, queue: str) -> RpcClient:
        client = self._clients.get(topic)
        if client is None:
            client = self._clients[topic] = self._transport.client(topic)
        return client if queue == topic else client.to(queue)

    def _note_failure(self, queue: str, error: Exception, lost: int) -> None:
        self.failed += lost
        metrics.HINTS_LOST.increment(by=lost)
        if self._clock() - self._logged_at >= self.LOG_INTERVAL:
            self._logged_at = self._clock()
            LOG.warning(
                'Lost a hint for %s (%d since the start); '
                'the sweep will find the work: %s',
                queue,
                self.failed,
                error,
            )


class HintListener:
    """Passes hints to a runner and calls to its endpoints.

    One server receives both; two servers on one queue would take messages
    from each other.
    """

    def __init__(
        self,
        transport: Transport,
        topic: str,
        server: str,
        wake: Callable[[str], object],
        endpoints: Iterable[typing.Any] = (),
    ):
        self._server = transport.serve(topic, server, [_HintEndpoint(wake), *endpoints])

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()


class _HintEndpoint:
    def __init__(self, wake: Callable[[str], object]):
        self._wake = wake

    def hint(
        self, ctx: object, work_id: str, more: Iterable[str] = (), **newer: object
    ) -> None:
        """Wake the runner; what a newer release says beside it is ignored."""
        for one in (work_id, *more):
            self._wake(one)

    def ping(self, ctx: object) -> None:
        """Do nothing: the sender wants to know whether the bus works."""

    hint.exposed = ping.exposed = True  # type: ignore[attr-defined]
