"""Start the services of a process, wait for a signal, stop them."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import functools
import gc
import ipaddress
import logging
import os
import socket
import threading
import time
import typing

from oslo_config import cfg
from oslo_service import systemd

from manila_lite import conf as options, masking
from manila_lite.api.latency import INTERVAL, LatencyReports
from manila_lite.cmd import CONCURRENCY, known_options, report, start, supervisor
from manila_lite.cmd.build.process import Process, connect_hints
from manila_lite.cmd.reload import Reloader
from manila_lite.cmd.signals import Signals
from manila_lite.coordination import Coordinator
from manila_lite.db.session import Database
from manila_lite.periodic import Periodic, Task
from manila_lite.rpc import transport
from manila_lite.rpc.hints import HintSender
from manila_lite.rpc.transport import Transport

LOG = logging.getLogger(__name__)

NOAUTH = ('noauth', 'noauthv2')

ENDLESS = 10 * 365 * 86400.0
"""Seconds to wait for running work if there is no limit."""


@dataclasses.dataclass(frozen=True)
class Forked:
    """What a service has in common with the process it is forked from.

    No connection of the database is open. `options` is the number of those
    that have been checked.
    """

    db: Database
    options: int
    on_ready: Callable[[], None]
    sockets: Sequence[socket.socket] = ()


def checked_database(
    conf: cfg.ConfigOpts, signals: Signals, forked: Forked | None
) -> Database:
    """Return the database, after the check that the service may use it."""
    if forked is None:
        db = start.database(conf, pause=signals.pause)
    else:
        db = forked.db
        db.start_after_fork()
    start.check_database(conf, db)
    return db


def receive_signals(prog: str, conf: cfg.ConfigOpts) -> Signals:
    """Receive signals from now on; SIGUSR2 writes a report at once."""
    signals = Signals(functools.partial(report.write, prog, conf))
    supervisor.receive_all()
    return signals


@contextlib.contextmanager
def process(
    conf: cfg.ConfigOpts, db: Database, default_url: str = 'rabbit://'
) -> Iterator[Process]:
    """Build a process with transport, hints and locks; close it after."""
    rpc_transport = connect(conf, default_url)
    locks = Coordinator(conf, f'{conf.host}-{os.getpid()}')
    built = Process(conf, db, transport=rpc_transport, locks=locks)
    sender = HintSender(rpc_transport, oldest_release=built.oldest_release)
    connect_hints(db, sender)
    try:
        yield built
    finally:
        sender.stop()
        rpc_transport.close()
        locks.stop()
        db.dispose()


def serve_until_stopped(
    process: Process,
    signals: Signals,
    services: list[typing.Any],
    *,
    has_api: bool = False,
    has_backends: bool = False,
    on_ready: Callable[[], None] | None = None,
    forked: Forked | None = None,
) -> bool:
    """Start services, wait for the signal, stop them in reverse order.

    All objects have been built, so all options are registered. Returns
    whether all running work has ended.
    """
    conf = process.conf
    reloader = Reloader(process, has_api=has_api)
    check_options(conf, forked, has_backends=has_backends)
    report.watch_file(conf)
    if has_api and conf.monitoring.charts:
        services = [*services, LatencyReporter(process)]
    started: list[typing.Any] = []
    has_ended = False
    try:
        for service in services:
            service.start()
            started.append(service)
        LOG.info('Started')
        if on_ready := forked.on_ready if forked else on_ready:
            on_ready()
        systemd.notify_once()
        tune_garbage_collector()
        signals.wait(reloader)
    finally:
        LOG.info('Stopping')
        process.stopping.set()
        has_ended = stop_all(started, conf.graceful_shutdown_timeout or ENDLESS)
    return has_ended


class LatencyReporter:
    """Reports the latency of the API of this process from time to time."""

    def __init__(self, process: Process):
        reports = LatencyReports(process.db, process.id)
        self._periodic = Periodic(
            [Task('latency', INTERVAL, reports.run_pass, initial_delay=INTERVAL)]
        )

    def start(self) -> None:
        self._periodic.start()

    def drain(self) -> None:
        self._periodic.drain()

    def stop(self, timeout: float) -> bool:
        self._periodic.stop(timeout)
        return True


def stop_all(services: Sequence[typing.Any], timeout: float) -> bool:
    """Let none begin anything new, then stop them in reverse order.

    Requests and driver calls have `timeout` seconds in all, beyond the time
    for which servers have to go on. Returns whether all have ended.
    """
    began = time.monotonic()
    for service in services:
        service.drain()
    deadline = (
        began
        + timeout
        + max(
            (getattr(service, 'drain_time', 0.0) for service in services), default=0.0
        )
    )
    ended = [
        service.stop(max(0.0, deadline - time.monotonic()))
        for service in reversed(services)
    ]
    return all(ended)


def check_options(
    conf: cfg.ConfigOpts, forked: Forked | None = None, *, has_backends: bool = False
) -> None:
    """Warn of options set in vain, and mask the values of secret ones.

    A forked service repeats only what may differ from its parent: to look at
    every option would copy 2.5 MiB of the memory in common.
    """
    if forked is None or has_backends:
        known_options.warn(conf, has_backends=has_backends)
    if forked is None or masking.count_options(conf) != forked.options:
        masking.remember_secret_options(conf)


def tune_garbage_collector() -> None:
    """Make garbage collections rarer and cheaper.

    Objects that exist now live on. A list request creates thousands of
    objects that live until the response; a collection after every 700 of
    them would take a sixth of its time.
    """
    gc.freeze()
    gc.set_threshold(20_000)


def connect(conf: cfg.ConfigOpts, default_url: str = 'rabbit://') -> Transport:
    """Return the configured transport, for threads or eventlet."""
    transport.init_backend(threading=CONCURRENCY != 'eventlet')
    return Transport(conf, default_url)


class WebServer:
    """A web server, with the interface of a service.

    It goes on for `drain_time` seconds after the process begins to stop.
    """

    def __init__(self, server: typing.Any, drain_time: float = 0.0):
        self.server = server
        self.drain_time = drain_time
        self._goes_on_until = 0.0
        self._thread = threading.Thread(target=server.run, name='web', daemon=True)

    def start(self) -> None:
        self._thread.start()

    def drain(self) -> None:
        self._goes_on_until = time.monotonic() + self.drain_time

    def stop(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        if (left := self._goes_on_until - time.monotonic()) > 0:
            threading.Event().wait(left)
        self.server.close(max(0.0, deadline - time.monotonic()))
        self._thread.join(1.0)
        return True


def refuse_open_noauth(conf: cfg.ConfigOpts, host: str) -> None:
    """Refuse noauth on other addresses than loopback, unless allowed.

    With noauth every caller is an administrator.
    """
    if (
        conf.auth_strategy in NOAUTH
        and not conf.noauth_allow_remote
        and not is_loopback(host)
    ):
        raise options.BadConfiguration(
            f'auth_strategy {conf.auth_strategy} makes every caller an '
            f'administrator and {host} is not a loopback address; choose '
            'another auth_strategy, listen on 127.0.0.1, or set '
            'noauth_allow_remote = true'
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address or name."""
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise options.BadConfiguration(f'cannot listen on {host}: {error}') from error
    return all(
        ipaddress.ip_address(address.partition('%')[0]).is_loopback for address in found
    )
