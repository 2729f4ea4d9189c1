"""The web servers: waitress with threads, eventlet's own with eventlet."""

import socket
import typing

from manila_lite import conf as options
from manila_lite.cmd import CONCURRENCY


def web_server(app: typing.Any, host: str, port: int) -> typing.Any:
    """Return a listening server; `run` serves until `close`."""
    server_class = (
        _EventletServer if CONCURRENCY == 'eventlet' else _WaitressServer
    )
    try:
        return server_class(app, host, port)
    except OSError as error:
        raise options.BadConfiguration(
            f'cannot listen on {host} port {port}: {error.strerror}'
        ) from error


class _WaitressServer:
    """waitress with more threads than can run at the same time.

    Most threads wait for the write lock of the database; with fewer
    threads, reads would queue behind them. They cost 1 MiB in all.
    """

    def __init__(self, app: typing.Any, host: str, port: int):
        from waitress import server

        self._server = server.create_server(
            app,
            host=host,
            port=port,
            threads=20,
            ident='manila_lite',
            clear_untrusted_proxy_headers=True,
            asyncore_use_poll=True,
            max_request_body_size=1 << 20,
            backlog=1024,
        )
        self.port = self._server.effective_port

    def run(self) -> None:
        self._server.run()

    def close(self) -> None:
        self._server.task_dispatcher.shutdown(timeout=1)
        self._server.trigger.pull_trigger(self._close_connections)

    def _close_connections(self) -> None:
        """Close all connections; `run` returns when responses are sent."""
        for channel in self._server.active_channels.values():
            channel.close_when_flushed = True
        self._server.close()


class _EventletServer:
    """The WSGI server of eventlet."""

    def __init__(self, app: typing.Any, host: str, port: int):
        import eventlet
        import eventlet.wsgi

        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        self._app = app
        self._socket = eventlet.listen(
            (host, port), family=family, backlog=1024
        )
        self.port = self._socket.getsockname()[1]

    def run(self) -> None:
        import eventlet.wsgi

        self._running = eventlet.getcurrent()
        eventlet.wsgi.server(
            self._socket, self._app, log_output=False, debug=False
        )

    def close(self) -> None:
        import eventlet

        eventlet.kill(self._running, SystemExit)
