"""Tell a proxy over HTTP whether a database node may be given writes.

It answers 200 or 503. A connection that is accepted says nothing: a Galera
node without its peers and a standby of PostgreSQL accept them, too.

Usage: database_check.py mysql|postgresql SOCKET ADDRESS PORT
"""

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


def is_primary_postgresql(socket: str) -> bool:
    connection = psycopg2.connect(
        host=socket, user='postgres', dbname='postgres', connect_timeout=2
    )
    try:
        cursor = connection.cursor()
        cursor.execute('SELECT pg_is_in_recovery()')
        return cursor.fetchone() == (False,)
    finally:
        connection.close()


def is_synced_galera(socket: str) -> bool:
    connection = pymysql.connect(
        unix_socket=socket, user='root', connect_timeout=2, read_timeout=2
    )
    try:
        cursor = connection.cursor()
        cursor.execute(_GALERA)
        return [value for (value,) in cursor.fetchall()] == ['4', 'ON']
    finally:
        connection.close()


CHECKS = {'mysql': is_synced_galera, 'postgresql': is_primary_postgresql}


def main() -> None:
    kind, socket, address, port = sys.argv[1:]

    class Handler(server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                is_ready = CHECKS[kind](socket)
            except (OSError, pymysql.MySQLError, psycopg2.Error):
                is_ready = False
            self.send_response(200 if is_ready else 503)
            self.send_header('Content-Length', '0')
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing: it is asked twice a second."""

    server.ThreadingHTTPServer((address, int(port)), Handler).serve_forever()


if __name__ == '__main__':
    main()
