"""Start the services of a process, wait for a signal, stop them.

SIGTERM and SIGINT stop a service, SIGHUP reloads what can change while it runs,
SIGUSR2 writes a report of its state. SIGUSR1 has no meaning, but must not
end the process, as it would by default. The report is that of oslo.reports,
which is imported when one is written: it costs memory that few processes
ever need.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import datetime
import faulthandler
import functools
import gc
from importlib import metadata
import ipaddress
import logging
import os
import select
import signal
import socket
import threading
import time
import traceback
import types
import typing

from oslo_config import cfg
from oslo_service import systemd

from manila_lite import conf as options, masking
from manila_lite.api.request_log import INTERVAL, LatencyReports
from manila_lite.cmd import CONCURRENCY, known_options, start, supervisor, watchdog
from manila_lite.cmd.build.process import Process, connect_hints
from manila_lite.cmd.reload import Reloader
from manila_lite.coordination import Coordinator
from manila_lite.db.session import Database
from manila_lite.periodic import Periodic, Task
from manila_lite.rpc import transport
from manila_lite.rpc.hints import HintSender
from manila_lite.rpc.transport import Transport
from manila_lite.work.runner import Runner

_STOP = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Receives signals from its creation on; `wait` handles them.

    A second SIGTERM or SIGINT exits at once. `report` is called in the
    signal handler: it also works while the process starts or stops.

    The kernel may deliver a signal to any thread, and that does not wake the
    main thread, which runs the handlers. So the number of each signal is
    written to a socket on which the main thread waits.
    """

    def __init__(self, report: Callable[[typing.Any], None]) -> None:
        self._sender, self._receiver = socket.socketpair()
        self._sender.setblocking(False)
        self._stopping = False
        self._had_terminal = os.isatty(0)
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        for number in _STOP:
            signal.signal(number, self._stop)
        for number in (signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, lambda number, frame: None)
        signal.signal(signal.SIGUSR2, lambda number, frame: report(frame))

    def _stop(self, number: int, frame: object) -> None:
        if self._stopping:
            raise SystemExit(128 + number)
        self._stopping = True

    def pause(self, seconds: float) -> None:
        """Sleep while the process starts; exit if it is to stop."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._stopping:
                raise SystemExit(0)
            if (
                select.select([self._receiver], [], [], left)[0]
                and self._receive() in _STOP
            ):
                raise SystemExit(0)

    def wait(self, reload: Callable[[], None]) -> None:
        """Return when the process is to stop; reload when asked to."""
        while (number := self._receive()) not in _STOP:
            if number == signal.SIGUSR1:
                LOG.info('SIGUSR1 has no effect; SIGUSR2 writes a report')
            elif number == signal.SIGHUP and self._lost_terminal():
                LOG.info('The terminal is closed')
                break
            elif number == signal.SIGHUP:
                reload()
        threading.Thread(target=self._exit_at_next, daemon=True).start()

    def _receive(self) -> int:
        return self._receiver.recv(1)[0]

    def _lost_terminal(self) -> bool:
        return self._had_terminal and not os.isatty(0)

    def _exit_at_next(self) -> None:
        """Exit at another signal, which the main thread may not notice."""
        while (number := self._receive()) not in _STOP:
            pass
        os._exit(128 + number)


_SECTION = 'oslo_reports'


class _Version:
    """The version, as oslo.reports asks for it."""

    def vendor_string(self) -> str:
        return 'manila_lite'

    def product_string(self) -> str:
        return 'manila_lite'

    def version_string_with_package(self) -> str:
        return metadata.version('manila_lite')


def write_report(
    prog: str, conf: cfg.ConfigOpts, frame: types.FrameType | None
) -> None:
    """Write a report to [oslo_reports] log_dir, or to standard error.

    Runs in a signal handler, so it must not raise, nor use the buffer of
    standard error, which the interrupted function may be writing.
    """
    try:
        text, folder = _report(conf, frame), _log_dir(conf)
        if folder:
            now = datetime.datetime.now(datetime.UTC)
            name = f'{prog}_gurumeditation_{now:%Y%m%d%H%M%S}'
            with open(os.path.join(folder, name), 'w') as file:
                file.write(text)
            return
    except Exception:  # noqa: BLE001 it would end the process
        text = masking.mask(f'No report: {traceback.format_exc()}')
    data = memoryview(f'{text}\n'.encode())
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(2, data) :]


def watch_file(conf: cfg.ConfigOpts) -> None:
    """Write reports when [oslo_reports] file_event_handler is touched."""
    if _SECTION not in conf.list_all_sections():
        return
    _log_dir(conf)
    if conf.oslo_reports.file_event_handler:
        from oslo_reports import guru_meditation_report

        guru_meditation_report.TextGuruMeditation.setup_autorun(
            _Version(), conf=conf, setup_signal=False
        )


def _report(conf: cfg.ConfigOpts, frame: types.FrameType | None) -> str:
    from oslo_reports import guru_meditation_report

    masking.remember_secret_options(conf)
    found = guru_meditation_report.TextGuruMeditation(_Version(), frame)
    return masking.mask_known(str(found.run()))


def _log_dir(conf: cfg.ConfigOpts) -> str | None:
    from oslo_reports import opts

    opts.set_defaults(conf)
    return conf.oslo_reports.log_dir


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
    faulthandler.enable()  # systemd ends a process that hangs by SIGABRT
    signals = Signals(functools.partial(write_report, prog, conf))
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
    if reporter := Watchdog.from_environment(process.runners):
        services = [reporter, *services]
    reloader = Reloader(process, has_api=has_api)
    check_options(conf, forked, has_backends=has_backends)
    watch_file(conf)
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


class PeriodicService:
    """A service that consists of one periodic task."""

    def __init__(self, task: Task):
        self._periodic = Periodic([task])

    def start(self) -> None:
        self._periodic.start()

    def drain(self) -> None:
        self._periodic.drain()

    def stop(self, timeout: float) -> bool:
        self._periodic.stop(timeout)
        return True


class Watchdog(PeriodicService):
    """Lets systemd restart the process when a loop of a runner hangs.

    A unit with `WatchdogSec` expects a message within that time. None is sent
    once the loop that looks for work, or the one that renews leases, has been
    overdue for as long. Errors, such as those of a database that is away, and
    driver calls, which may take hours, delay neither.
    """

    def __init__(self, runners: Sequence[Runner], receiver: watchdog.Receiver):
        super().__init__(Task('watchdog', receiver.interval, self._report))
        self._runners = runners
        self._receiver = receiver

    @classmethod
    def from_environment(cls, runners: Sequence[Runner]) -> 'Watchdog | None':
        """Return it if systemd, or the parent of this process, wants it."""
        receiver = watchdog.Receiver.from_environment()
        return None if receiver is None else cls(runners, receiver)

    def _report(self) -> None:
        overdue = max((each.overdue_by() for each in self._runners), default=0.0)
        if overdue > self._receiver.seconds:
            LOG.critical('A loop of this process has hung for %d s', overdue)
            return
        self._receiver.send()


class LatencyReporter(PeriodicService):
    """Reports the latency of the API of this process from time to time."""

    def __init__(self, process: Process):
        reports = LatencyReports(process.db, process.id)
        super().__init__(
            Task('latency', INTERVAL, reports.run_pass, initial_delay=INTERVAL)
        )


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
    """Warn of options without effect, and mask the values of secret ones.

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


class Server(typing.Protocol):
    """What `manila_lite.cmd.web` makes."""

    def run(self) -> object: ...

    def close(self, timeout: float, /) -> object: ...


class WebServer:
    """A web server, with the interface of a service.

    It goes on for `drain_time` seconds after the process begins to stop.
    """

    def __init__(self, server: Server, drain_time: float = 0.0):
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
