"""Accounts of a database server for each service."""

from collections.abc import Iterator, Sequence
import contextlib
import uuid

import sqlalchemy as sa

from manila_lite.db import grants

PASSWORD = 'secret'
_MAKE = {
    'mysql': "CREATE USER {}@'%' IDENTIFIED BY '{}'",
    'postgresql': "CREATE ROLE {} LOGIN PASSWORD '{}'",
}
_DROP = {'mysql': "DROP USER {}@'%'", 'postgresql': 'DROP OWNED BY {0}; DROP ROLE {0}'}


def _run(url: str, *statements: str) -> None:
    engine = sa.create_engine(
        url, poolclass=sa.pool.NullPool, isolation_level='AUTOCOMMIT'
    )
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement.replace('%', '%%'))


@contextlib.contextmanager
def made(
    url: str, services: Sequence[str] = grants.SERVICES
) -> Iterator[dict[str, str]]:
    """Yield the URL of each service; its account may only connect."""
    parsed = sa.make_url(url)
    dialect = parsed.get_backend_name()
    names = {service: f'test_{service}_{uuid.uuid4().hex[:8]}' for service in services}
    _run(url, *(_MAKE[dialect].format(name, PASSWORD) for name in names.values()))
    try:
        yield {
            service: parsed.set(username=name, password=PASSWORD).render_as_string(
                hide_password=False
            )
            for service, name in names.items()
        }
    finally:
        _run(url, *(_DROP[dialect].format(name) for name in names.values()))


@contextlib.contextmanager
def limited(url: str) -> Iterator[dict[str, str]]:
    """Do the same, with the rights that each service needs.

    The database has all tables.
    """
    with made(url) as urls:
        for service, found in urls.items():
            grant(url, [service], str(sa.make_url(found).username))
        yield urls


def grant(url: str, services: list[str], name: str) -> None:
    """Give an account what services need, as an administrator does."""
    dialect = sa.make_url(url).get_backend_name()
    _run(url, *grants.statements(dialect, services, name))
