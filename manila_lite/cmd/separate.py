"""manila-lite services: services of a node, each in a process of its own.

All are forked from one parent, which imports and configures what they have in
common: that takes less memory than programs that are started one by one, and
less time.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
import functools
import socket
import sys
import time

from oslo_config import cfg
from oslo_service import systemd

from manila_lite import conf as options, masking
from manila_lite.cmd import (
    CONCURRENCY,
    api,
    console,
    data,
    running,
    scheduler,
    share,
    start,
    web,
)
from manila_lite.cmd.build.api import build_api
from manila_lite.cmd.supervisor import Run, Supervisor
from manila_lite.db.session import Database

PROG = 'manila-lite'

API = 'api'
_OTHERS: dict[str, Callable[..., None]] = {
    'scheduler': scheduler.COMMAND.serve,
    'share': share.serve,
    'data': data.COMMAND.serve,
}
KINDS = (API, *_OTHERS)


def add_to(commands: console.Commands) -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        'services', help='run services of this node in separate processes'
    )
    parser.add_argument(
        'kind',
        nargs='*',
        type=_kind,
        metavar='KIND',
        help=f'services to run, of {", ".join(KINDS)}; default: all',
    )
    parser.add_argument(
        '--config-file',
        action='append',
        metavar='F',
        help='configuration file; may be repeated',
    )
    parser.add_argument(
        '--apis',
        type=_positive,
        default=1,
        metavar='N',
        help='number of processes of the API (default %(default)s)',
    )


def _kind(text: str) -> str:
    # The choices of argparse would have to contain what no argument gives.
    if text not in KINDS:
        raise argparse.ArgumentTypeError(f'{text} is none of {", ".join(KINDS)}')
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text} is not a positive number')
    return int(text)


def run(args: argparse.Namespace) -> None:
    """Serve until a signal; fail at once if the configuration is wrong."""
    if CONCURRENCY == 'eventlet':
        raise options.BadConfiguration(
            'services cannot be forked with eventlet: unset '
            'MANILA_LITE_CONCURRENCY, or start each with its own command'
        )
    kinds = dict.fromkeys(args.kind or KINDS)
    conf = start.configure(PROG, config_files=args.config_file)
    sockets: list[socket.socket] = []
    if API in kinds:
        running.refuse_open_noauth(conf, conf.osapi_share_listen)
        sockets = web.shared_sockets(conf)
    db = start.database(conf, pause=time.sleep)
    _load(conf, db, has_api=API in kinds)
    services = _Services(conf, db, sockets)
    supervisor = Supervisor(
        services.by_name(kinds, args.apis),
        on_ready=systemd.notify_once,
        # APIs that still drain have their own.
        on_stop=services.close_sockets,
    )
    if not supervisor.run():
        sys.exit(1)


def _load(conf: cfg.ConfigOpts, db: Database, *, has_api: bool) -> None:
    """Import and compile what services need; close all connections."""
    start.check_database(conf, db)
    with running.process(conf, db) as process:
        if has_api:
            web.load_server()
            build_api(process)
    running.check_options(conf)


class _Services:
    """The services of the node, to be run in forked processes."""

    def __init__(
        self, conf: cfg.ConfigOpts, db: Database, sockets: list[socket.socket]
    ):
        self._conf, self._db, self._sockets = conf, db, sockets
        self._options = masking.count_options(conf)

    def by_name(self, kinds: Iterable[str], apis: int) -> Iterator[tuple[str, Run]]:
        for kind in kinds:
            if kind == API:
                for number in range(1, apis + 1):
                    yield f'{API} {number}', self._serve_api
            else:
                yield kind, functools.partial(self._serve, _OTHERS[kind])

    def _serve_api(self, on_ready: Callable[[], None]) -> None:
        with start.report_errors(PROG):
            api.serve(self._conf, self._forked(on_ready, self._sockets))

    def _serve(self, serve: Callable[..., None], on_ready: Callable[[], None]) -> None:
        self.close_sockets()
        with start.report_errors(PROG):
            serve(self._conf, self._forked(on_ready))

    def _forked(
        self, on_ready: Callable[[], None], sockets: Sequence[socket.socket] = ()
    ) -> running.Forked:
        return running.Forked(self._db, self._options, on_ready, sockets)

    def close_sockets(self) -> None:
        for one in self._sockets:
            one.close()
