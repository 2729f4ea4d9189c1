"""The certificate of a database server, for those who watch its end."""

import sqlalchemy as sa

from manila_lite.db.session import Session

_END = sa.text("SHOW SESSION STATUS LIKE 'Ssl_server_not_after'")


def find_server(connection: str) -> tuple[str, int, str] | None:
    """Return host, port and authorities of the server, if it is verified with any."""
    url = sa.make_url(connection)
    authorities = url.query.get('ssl_ca') or url.query.get('sslrootcert')
    if not authorities or not url.host:
        return None
    port = url.port or (3306 if url.drivername.startswith('mysql') else 5432)
    return url.host, port, str(authorities)


def find_end(session: Session) -> str | None:
    """Return when the certificate of MariaDB ends, as it prints that.

    None if the connection has no TLS.
    """
    found = session.connection.execute(_END).all()
    return found[0][1] or None if found else None
