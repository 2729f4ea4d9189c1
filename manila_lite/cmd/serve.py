"""manila-lite serve: all services in one process, with one command.

`manila-lite services` is in another module.

API, scheduler, share and data service over SQLite, `memory://` and file locks.
Without a configuration file it has back ends and types of its own, see
`built_in`.
"""

import argparse
from collections.abc import Iterator
import contextlib
import os
import pathlib
import shlex
import shutil
import sys
import typing

from oslo_concurrency import lockutils
from oslo_config import cfg

from manila_lite import conf as options
from manila_lite.cmd import built_in, console, running, separate, start
from manila_lite.cmd.build.api import build_api
from manila_lite.cmd.build.data import build_data
from manila_lite.cmd.build.health import checks_of_backends
from manila_lite.cmd.build.scheduler import build_scheduler
from manila_lite.cmd.build.share import ShareService, build_share_service
from manila_lite.cmd.web import web_server
from manila_lite.db import schema
from manila_lite.db.queries.services import incarnations
from manila_lite.quota import sets
from manila_lite.share.manager.backend import wait_until_up
from manila_lite.work import table

PROG = 'manila-lite'

_READY = 'manila_lite answers at {url}'
_CONNECT = """Paste this into a second terminal:
{activate}  export OS_AUTH_TYPE=password OS_AUTH_URL={root}/v3 \
OS_USERNAME=admin OS_PASSWORD=any OS_PROJECT_NAME=admin"""
_CONNECT_WITHOUT_IDENTITY = """Paste this into a second terminal:
{activate}  export OS_AUTH_TYPE=none OS_ENDPOINT={root}/v2"""
_FIRST_SHARE = """\
  openstack share create {} 1 --name first --wait
  openstack share show first
"""
# What a configuration file offers is not known here, share types neither.
_LOOK_AROUND = """\
  openstack share pool list
  openstack share type list
"""


def main() -> None:
    with start.report_errors(PROG):
        args = _arguments()
        if args.command == 'services':
            separate.run(args)
        else:
            _serve(args)


def _arguments() -> typing.Any:
    parser = argparse.ArgumentParser(prog=PROG)
    console.add_version(parser)
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
    clients = serve.add_mutually_exclusive_group()
    clients.add_argument(
        '--nfs',
        action='store_true',
        help='give the share type "default" shares that NFS clients mount; '
        'needs root, see "manila-lite-manage storage check"',
    )
    serve.add_argument(
        '--nfs-address',
        metavar='A',
        help='address of this machine that clients mount them from (default: '
        '127.0.0.1); with --ceph, that of an NFS gateway',
    )
    clients.add_argument(
        '--ceph',
        metavar='F',
        help='give the share type "default" shares on the file system of a Ceph '
        'cluster, of which F is the configuration file',
    )
    separate.add_to(commands)
    serve.add_argument('--host', help='address to listen on')
    serve.add_argument('--port', type=console.port, help='port to listen on')
    return parser.parse_args()


def _serve(args: argparse.Namespace) -> None:
    conf = _configure(args)
    running.refuse_open_noauth(conf, conf.osapi_share_listen)
    signals = running.receive_signals(PROG, conf)
    db = start.database(conf, pause=signals.pause)
    with (
        _lock_state_dir(conf.state_path),
        running.process(conf, db, 'memory://') as process,
    ):
        schema.sync(db)
        if not args.config_file:
            first = built_in.first_backend(args.nfs, args.ceph is not None)
            db.write(built_in.add_types, first)
        db.write(sets.refresh_defaults, process.limits())
        scheduler = build_scheduler(process)
        share = build_share_service(process)
        data = build_data(process)
        # No other process uses this state directory: all leases are stale.
        for runner in (
            *scheduler.runners,
            *data.runners,
            *(backend.runner for backend in share.backends),
        ):
            db.write(table.expire_leases, runner.queues)
        db.write(incarnations.deregister_all)
        with start.if_possible('Retiring back ends'):
            share.mark_others_down(process)
        app, _ = build_api(process, checks=checks_of_backends(share.backends))
        server = web_server(app, conf)
        for service in (scheduler, data):
            with start.if_possible('Registering the service'):
                service.register()

        def ready() -> None:
            root = _root_url(conf, server.port)
            print(_READY.format(url=f'{root}/v2'), flush=True)
            if conf.auth_strategy in running.NOAUTH:
                first_share = _FIRST_SHARE.format('CEPHFS' if args.ceph else 'NFS')
                example = _LOOK_AROUND if args.config_file else first_share
                connect = (
                    _CONNECT
                    if conf.http_basic.identity_api
                    else _CONNECT_WITHOUT_IDENTITY
                ).format(root=root, activate=_activation())
                print(connect, example, sep='\n', flush=True)

        running.serve_until_stopped(
            process,
            signals,
            [
                _ReadyShareService(share),
                data,
                scheduler,
                running.WebServer(server, conf.api_drain_time),
            ],
            has_api=True,
            has_backends=True,
            on_ready=ready,
        )


def _activation() -> str:
    """Return the line that makes the client of this environment a command.

    It is empty where the client is a command already, or not installed here.
    """
    folder = pathlib.Path(sys.executable).parent
    if shutil.which('openstack') or not (folder / 'openstack').exists():
        return ''
    script = os.path.relpath(folder / 'activate')
    return f'  . {shlex.quote(script)}\n'


def _configure(args: argparse.Namespace) -> cfg.ConfigOpts:
    conf = start.configure(
        PROG, config_files=args.config_file or [], state_dir=args.state_dir
    )
    conf.set_default('auth_strategy', 'noauth')
    conf.set_default('osapi_share_listen', '127.0.0.1')
    if args.host:
        conf.set_override('osapi_share_listen', args.host)
    if args.port is not None:
        conf.set_override('osapi_share_listen_port', args.port)
    # There is no authentication of scrapers.
    if running.is_loopback(conf.osapi_share_listen):
        conf.set_default('api_metrics', True, 'monitoring')
        conf.set_default('enabled', True, 'ui')
    if not args.config_file:
        built_in.configure(
            conf,
            nfs_address=args.nfs_address or ('127.0.0.1' if args.nfs else None),
            ceph_conf=args.ceph,
        )
    return conf


class _ReadyShareService:
    """The share service, started when its drivers are ready.

    Otherwise the scheduler would find no back end for work left over from
    a crash. It does not wait longer than DRIVER_TIMEOUT seconds.
    """

    DRIVER_TIMEOUT = 2.0

    def __init__(self, share: ShareService):
        self._share = share
        self.drain = share.drain
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


def _root_url(conf: cfg.ConfigOpts, port: int) -> str:
    host = conf.osapi_share_listen
    return f'http://{f"[{host}]" if ":" in host else host}:{port}'


if __name__ == '__main__':
    main()
