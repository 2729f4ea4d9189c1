"""The services of a cluster, each on a node of its own."""

from collections.abc import Iterable
import functools
import pathlib
from typing import NamedTuple

from tests.cluster.nodes import SMALL_DISK, Node
from tests.cluster.proxy import API_PORT
from tests.support.processes import BINARIES, Command

MONITORING_PORT = 8787
CLOCKED = pathlib.Path(__file__).with_name('clocked.py')

_CONF = """
[DEFAULT]
host = {host}
my_ip = {address}
state_path = {folder}/disk/state
log_file = {folder}/disk/log
use_stderr = true
auth_strategy = noauth
noauth_allow_remote = true
osapi_share_listen = {address}
osapi_share_listen_port = {api_port}
api_drain_time = 3
enabled_share_backends = {backend}
default_share_type = default
default_share_group_type = default
report_interval = {report_interval}
service_down_time = {service_down_time}
periodic_interval = {report_interval}
replica_state_update_interval = 5
transfer_retention_time = 100000
migration_driver_continue_update_interval = 1
driver_backup_continue_update_interval = 1
driver_restore_continue_update_interval = 1
backup_folder = {shared}/backups
transport_url = {transport}
[database]
connection = {database}
[coordination]
backend_url = {locks}
[work]
lease = {lease}
sweep_interval = {sweep}
workers_per_backend = 4
[recovery]
interval = {recovery}
[quota]
shares = -1
gigabytes = -1
snapshots = -1
snapshot_gigabytes = -1
share_groups = -1
share_group_snapshots = -1
share_replicas = -1
replica_gigabytes = -1
backups = -1
backup_gigabytes = -1
[monitoring]
listen = {address}
scheduler_port = {monitoring_port}
share_port = {monitoring_port}
data_port = {monitoring_port}
api_metrics = true
[{backend}]
share_driver = dummy
driver_handles_share_servers = false
dummy_driver_state_path = {shared}/dummy/{backend}
dummy_driver_replication_path = {shared}/replication
dummy_driver_default_driver_method_delay = {delay}
dummy_driver_driver_methods_delays = {delays}
replication_domain = cluster
"""
_OTHER = """
[{backend}]
share_driver = dummy
driver_handles_share_servers = false
dummy_driver_state_path = {shared}/dummy/{backend}
"""
"""What the driver of one back end has to know of another to migrate there."""


class Servers(NamedTuple):
    """Where services find what they all use."""

    database: str
    transport: str
    locks: str


class Timing(NamedTuple):
    """Seconds after which the loss of a service is noticed, and others."""

    report_interval: int = 2
    service_down_time: int = 10
    lease: float = 5
    sweep: float = 0.5
    recovery: int = 10
    delay: float = 0.1
    delays: str = ''
    """Methods of the driver with other delays, as in the option."""


class Service:
    """One process on its node.

    Share services with one `host` and `backend` serve the same back end.
    """

    def __init__(
        self,
        kind: str,
        node: Node,
        host: str,
        backend: str,
        has_clock: bool = False,
        release: pathlib.Path | None = None,
    ):
        self.kind = kind
        self.node = node
        self.host = host
        self.backend = backend
        self.has_clock = has_clock
        self.release = release
        """The folder with the code of another release, if it runs that."""
        self.conf = node.folder / 'manila_lite.conf'
        self._seen = 0
        self._command: Command | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def service_host(self) -> str:
        return f'{self.host}@{self.backend}'

    @property
    def health_url(self) -> str:
        """Where the process answers on its node."""
        port = API_PORT if self.kind == 'api' else MONITORING_PORT
        return f'http://{self.node.address}:{port}/healthcheck'

    def configure(
        self,
        shared: pathlib.Path,
        servers: Servers,
        timing: Timing,
        others: Iterable[str] = (),
    ) -> None:
        """Write the file; `others` are back ends that shares may move to."""
        self.conf.write_text(
            _CONF.format(
                **servers._asdict(),
                **timing._asdict(),
                host=self.host,
                backend=self.backend,
                address=self.node.address,
                folder=self.node.folder,
                shared=shared,
                api_port=API_PORT,
                monitoring_port=MONITORING_PORT,
            )
            + ''.join(_OTHER.format(backend=other, shared=shared) for other in others)
        )

    def start(self) -> None:
        """Start the process without waiting for it."""
        log = self.node.folder / 'log'
        self._seen = log.stat().st_size if log.exists() else 0
        words = [f'manila-lite-{self.kind}', '--config-file', str(self.conf)]
        enter = self.node.enter
        if self.has_clock:
            # Not by the process, which would undo what is set meanwhile.
            self.node.set_clock(0)
            enter = functools.partial(
                self.node.enter_with_clock, [str(CLOCKED), *words]
            )
        if self.release is not None:
            enter = functools.partial(
                self.node.enter_with_code,
                self.release,
                [str(BINARIES / words[0]), *words[1:]],
            )
        self._command = Command(*words, log=log, forked=True, enter=enter)

    def sync(self, release: pathlib.Path) -> None:
        """Run `manila-lite-manage db sync` of another release on the node."""
        (self.node.folder / SMALL_DISK).mkdir(exist_ok=True)
        done = self.node.run(
            *(BINARIES / 'manila-lite-manage', 'db', 'sync'),
            *('--config-file', self.conf),
            env={'PYTHONPATH': str(release)},
        )
        assert done.returncode == 0, done

    def manage(self, *words: str) -> tuple[int, str]:
        """Run manila-lite-manage; return its exit code and its output."""
        log = self.node.folder / 'manage'
        log.unlink(missing_ok=True)
        command = Command(
            *('manila-lite-manage', *words, '--config-file', self.conf),
            log=log,
            forked=True,
            enter=self.node.enter,
        )
        return command.wait_for_exit(timeout=600), command.output

    @property
    def is_running(self) -> bool:
        return self._command is not None and self._command.is_running

    @property
    def is_ready(self) -> bool:
        return self.is_running and self.was_ready

    @property
    def was_ready(self) -> bool:
        """Whether the process of the last start is or was ready."""
        texts = ['Started']
        if self.kind == 'share':
            texts.append(f'Back end {self.service_host} is up')
        with (self.node.folder / 'log').open('rb') as log:
            log.seek(self._seen)
            printed = log.read().decode(errors='replace')
        return all(text in printed for text in texts)

    def stop(self) -> None:
        """Stop as an administrator does: work ends or is handed over."""
        self._command.terminate()

    def wait(self, timeout: float = 60) -> int:
        return self._command.wait_for_exit(timeout)

    def kill(self) -> None:
        self._command.kill()
