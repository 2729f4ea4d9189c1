"""Tell a proxy over HTTP whether a database node may be given writes.

It answers 200 or 503. A connection that is accepted says nothing: a Galera
node without its peers and a standby of PostgreSQL accept them, too.

Usage: database_check.py mysql|postgresql SOCKET ADDRESS PORT
"""

import contextlib
from http import server
import sys

import psycopg2
import pymysql

# 4 is Synced. A node that is cut off from the majority is not ready.
_GALERA = (
    'SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE '
    "VARIABLE_NAME IN ('WSREP_LOCAL_STATE', 'WSREP_READY') "
    'ORDER BY VARIABLE_VALUE'
)


_PRIMARY = 'SELECT pg_is_in_recovery()'
PATIENCE = 3  # seconds; the proxy waits longer


def connect_postgresql(socket: str) -> psycopg2.extensions.connection:
    connection = psycopg2.connect(
        host=socket, user='postgres', dbname='postgres', connect_timeout=PATIENCE
    )
    connection.autocommit = True
    return connection


def connect_mysql(socket: str) -> pymysql.Connection:
    return pymysql.connect(
        unix_socket=socket, user='root', connect_timeout=PATIENCE, read_timeout=PATIENCE
    )


class Check:
    """Asks a server by one connection: new ones would be slow under load."""

    def __init__(self, kind: str, socket: str):
        self._kind = kind
        self._socket = socket
        self._connection = None

    def is_ready(self) -> bool:
        try:
            return self._ask()
        except (OSError, pymysql.MySQLError, psycopg2.Error):
            self._connection = None
            return False

    def _ask(self) -> bool:
        is_mysql = self._kind == 'mysql'
        if self._connection is None:
            connect = connect_mysql if is_mysql else connect_postgresql
            self._connection = connect(self._socket)
        cursor = self._connection.cursor()
        cursor.execute(_GALERA if is_mysql else _PRIMARY)
        values = [value for (value,) in cursor.fetchall()]
        return values == (['4', 'ON'] if is_mysql else [False])


def main() -> None:
    kind, socket, address, port = sys.argv[1:]
    check = Check(kind, socket)

    class Handler(server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if check.is_ready() else 503)
            self.send_header('Content-Length', '0')
            with contextlib.suppress(OSError):  # it did not wait
                self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing: it is asked every second."""

    server.HTTPServer((address, int(port)), Handler).serve_forever()


if __name__ == '__main__':
    main()
