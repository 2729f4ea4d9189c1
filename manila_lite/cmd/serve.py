"""manila-lite serve: all services in one process, with one command.

API, scheduler and share service over SQLite, `memory://` and file locks.
Without a configuration file there are two back ends, `local` (real
directories) and `dummy` (no storage), with a default share type on the
first and a share type `dummy` on the second.
"""

import argparse
from collections.abc import Iterator
import contextlib
import functools
import os
import typing

from oslo_concurrency import lockutils

from manila_lite import conf as options
from manila_lite.cmd import running
from manila_lite.cmd import start
from manila_lite.cmd.build.api import build_api
from manila_lite.cmd.build.scheduler import build_scheduler
from manila_lite.cmd.build.share import ShareService
from manila_lite.cmd.build.share import build_share_service
from manila_lite.cmd.web import web_server
from manila_lite.db import schema
from manila_lite.db.queries.types import records as share_types
from manila_lite.db.session import Session
from manila_lite.quota import sets
from manila_lite.share.manager.backend import wait_until_up
from manila_lite.work import table

PROG = 'manila-lite'

DEFAULT_TYPE, DUMMY_TYPE = 'default', 'dummy'

_SPECS = {
    'driver_handles_share_servers': 'False',
    'snapshot_support': 'True',
    'create_share_from_snapshot_support': 'True',
    'revert_to_snapshot_support': 'True',
}

_READY = 'manila_lite answers at {url}'
_EXAMPLE = """Paste this into a shell with the official client installed:
  export OS_AUTH_TYPE=none OS_ENDPOINT={url}
  openstack share create NFS 1 --name first --wait
  openstack share show first
"""


def main() -> None:
    with start.report_errors(PROG):
        _serve(_arguments())


def _arguments() -> typing.Any:
    parser = argparse.ArgumentParser(prog=PROG)
    commands = parser.add_subparsers(dest='command', required=True)
    serve = commands.add_parser('serve', help='run everything in this process')
    serve.add_argument(
        '--config-file',
        action='append',
        metavar='F',
        help='replaces the built-in back ends and types',
    )
    serve.add_argument(
        '--state-dir',
        default='state',
        metavar='D',
        help='database, locks and data (default: ./state)',
    )
    serve.add_argument('--host', help='address to listen on')
    serve.add_argument('--port', type=int, help='port to listen on')
    return parser.parse_args()


def _serve(args: typing.Any) -> None:
    conf = _configure(args)
    running.refuse_open_noauth(conf, conf.osapi_share_listen)
    stop = running.StopSignal()
    db = start.database(conf)
    with (
        _lock_state_dir(conf.state_path),
        running.process(conf, db, 'memory://') as process,
    ):
        schema.sync(db)
        if not args.config_file:
            db.write(_add_types)
        db.write(sets.refresh_defaults, process.limits())
        scheduler = build_scheduler(process)
        share = build_share_service(process)
        # No other process uses this state directory: all leases are stale.
        for runner in (
            *scheduler.runners,
            *(backend.runner for backend in share.backends),
        ):
            db.write(table.expire_leases, runner.queues)
        app, _ = build_api(process, checks=_checks(share.backends))
        server = web_server(
            app, conf.osapi_share_listen, conf.osapi_share_listen_port
        )
        scheduler.register()

        def ready() -> None:
            url = _url(conf, server.port)
            print(_READY.format(url=url), flush=True)
            if conf.auth_strategy in running.NOAUTH:
                print(_EXAMPLE.format(url=url), flush=True)

        running.serve_until(
            stop,
            [_ReadyShareService(share), scheduler, running.WebServer(server)],
            ready,
        )


def _configure(args: typing.Any) -> typing.Any:
    conf = start.configure(
        PROG, config_files=args.config_file or [], state_dir=args.state_dir
    )
    conf.set_default('auth_strategy', 'noauth')
    conf.set_default('osapi_share_listen', '127.0.0.1')
    if args.host:
        conf.set_override('osapi_share_listen', args.host)
    if args.port is not None:
        conf.set_override('osapi_share_listen_port', args.port)
    if not args.config_file:
        conf.set_default('host', 'manila-lite')
        conf.set_override('enabled_share_backends', ['local', 'dummy'])
        conf.set_default('default_share_type', DEFAULT_TYPE)
        for name in ('local', 'dummy'):
            options.register_backend(conf, name)
            conf.set_override('share_driver', name, name)
            conf.set_override('driver_handles_share_servers', False, name)
        conf.set_override(
            'dummy_driver_default_driver_method_delay', 0, 'dummy'
        )
        conf.set_override('dummy_driver_driver_methods_delays', {}, 'dummy')
    return conf


class _ReadyShareService:
    """The share service, started when its drivers are ready.

    Otherwise the scheduler would find no back end for work left over from
    a crash. It does not wait longer than DRIVER_TIMEOUT seconds.
    """

    DRIVER_TIMEOUT = 2.0

    def __init__(self, share: ShareService):
        self._share = share
        self.stop = share.stop

    def start(self) -> None:
        self._share.start()
        wait_until_up(self._share.backends, self.DRIVER_TIMEOUT)


@contextlib.contextmanager
def _lock_state_dir(folder: str) -> Iterator[None]:
    """Lock the state directory; refuse to start a second server on it.

    The system releases the lock when the process dies.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = lockutils.InterProcessLock(os.path.join(folder, 'serve.lock'))
    if not lock.acquire(blocking=False):
        raise options.BadConfiguration(f'another process serves from {folder}')
    try:
        yield
    finally:
        lock.release()


def _add_types(session: Session) -> None:
    """Create the initial share types unless there are any types."""
    if share_types.has_any(session):
        return
    for name, backend in ((DEFAULT_TYPE, 'local'), (DUMMY_TYPE, 'dummy')):
        share_types.create(
            session,
            name=name,
            description=None,
            is_public=True,
            extra_specs=_SPECS | {'share_backend_name': backend},
        )


def _checks(backends: list[typing.Any]) -> dict[str, typing.Callable]:
    """Return checks for /healthcheck, which is public: without reasons."""

    def check(backend: typing.Any) -> str | None:
        return None if backend.is_up else 'is not up, see "service list"'

    return {
        backend.host: functools.partial(check, backend) for backend in backends
    }


def _url(conf: typing.Any, port: int) -> str:
    host = conf.osapi_share_listen
    return f'http://{f"[{host}]" if ":" in host else host}:{port}/v2'


if __name__ == '__main__':
    main()
