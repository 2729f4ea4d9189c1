"""manila-lite-api: the API alone; also a WSGI module for other servers.

`manila_lite.cmd.api:application` parses no arguments: it reads the
configuration from the usual places or from MANILA_LITE_CONF, which may name
several files with `:` between them.
"""

import argparse
import functools
import os
import time
import typing

from oslo_config import cfg

from manila_lite import masking
from manila_lite.cmd import console, running, start
from manila_lite.cmd.build.api import build_api
from manila_lite.cmd.build.process import Process, connect_hints
from manila_lite.cmd.web import web_server
from manila_lite.quota import sets
from manila_lite.rpc.hints import HintSender

PROG = 'manila-lite-api'


def main() -> None:
    with start.report_errors(PROG):
        files = arguments(PROG).config_file
        conf = start.configure(PROG, config_files=files)
        running.refuse_open_noauth(conf, conf.osapi_share_listen)
        serve(conf)


def serve(conf: cfg.ConfigOpts, forked: running.Forked | None = None) -> None:
    """Serve until a signal ends the process."""
    signals = running.receive_signals(PROG, conf)
    db = running.checked_database(conf, signals, forked)
    with running.process(conf, db) as process:
        app, _ = build_api(process)
        server = web_server(app, conf, forked.sockets if forked else ())
        process.db.write(sets.refresh_defaults, process.limits())
        running.serve_until_stopped(
            process,
            signals,
            [running.WebServer(server, conf.api_drain_time)],
            has_api=True,
            forked=forked,
        )


def arguments(prog: str, argv: list[str] | None = None) -> typing.Any:
    """Parse the arguments of a single service."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument(
        '--config-file',
        action='append',
        metavar='F',
        help='configuration file; may be repeated',
    )
    console.add_version(parser)
    return parser.parse_args(argv)


@functools.cache
def _application() -> typing.Callable:
    files = os.environ.get('MANILA_LITE_CONF')
    conf = start.configure(PROG, config_files=files and files.split(os.pathsep))
    db = start.database(conf, pause=time.sleep)
    start.check_database(conf, db)
    transport = running.connect(conf)
    process = Process(conf, db, transport=transport)
    connect_hints(db, HintSender(transport, oldest_release=process.oldest_release))
    app, _ = build_api(process)
    masking.remember_secret_options(conf)
    return app


def application(
    environ: dict, start_response: typing.Callable
) -> typing.Iterable[bytes]:
    """The API for any WSGI server; built at the first request."""
    return _application()(environ, start_response)


if __name__ == '__main__':
    main()
