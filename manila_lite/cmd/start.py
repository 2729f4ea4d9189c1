"""What every command begins with: configuration, log, database, errors."""

from collections.abc import Iterator, Sequence
import contextlib
from importlib import metadata
import logging
import os
import re
import sqlite3
import sys

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db import options as db_options
from oslo_log import log
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from manila_lite import conf as options
from manila_lite import exception
from manila_lite.db.session import Database

LOG = logging.getLogger(__name__)

DATABASE_FILE = 'manila_lite.sqlite'
"""The database inside a state directory."""

EXPECTED_ERRORS = (
    cfg.Error,
    log.LogConfigError,
    exception.ManilaLiteError,
    db_exc.DBError,
    sa_exc.SQLAlchemyError,
    sqlite3.Error,
    OSError,
)
"""Errors that an operator can mend; anything else is a fault of ours."""

_OF_DATABASES = (db_exc.DBError, sa_exc.DBAPIError, sqlite3.Error)
_URL_PASSWORD = re.compile(r'((?://|,)[^:/@,\s]*:)[^@,\s]+@')


@contextlib.contextmanager
def report_errors(prog: str) -> Iterator[None]:
    """Turn what an operator can mend into one line and exit code 1."""
    try:
        yield
    except EXPECTED_ERRORS as error:
        LOG.debug('%s ends', prog, exc_info=True)
        sys.exit(f'{prog}: {one_line_message(error)}')
    except KeyboardInterrupt:
        sys.exit(130)  # as shells say it


def one_line_message(error: BaseException) -> str:
    """What went wrong, without SQL and without passwords."""
    cause = getattr(error, 'inner_exception', None) or error
    cause = getattr(cause, 'orig', None) or cause
    text = ' '.join(str(cause).split()) or type(cause).__name__
    if isinstance(error, _OF_DATABASES):
        text = f'the database says: {text}'
    return _URL_PASSWORD.sub(r'\1***@', text)


def configure(
    prog: str,
    argv: Sequence[str] = (),
    *,
    config_files: Sequence[str] | None = None,
    state_dir: str | None = None,
    conf: cfg.ConfigOpts = cfg.CONF,
) -> cfg.ConfigOpts:
    """The configuration, read, checked and with the log going.

    `argv` may name files itself; `config_files` count when it does not,
    and when those are None, the usual places are searched. What is kept
    in `state_dir` includes a SQLite database unless a file names another.
    """
    conf.reset()
    options.register_all(conf)
    conf.register_opts(db_options.database_opts, 'database')
    log.register_options(conf)
    conf(
        list(argv),
        project=options.PROJECT,
        prog=prog,
        version=metadata.version('manila_lite'),
        default_config_files=config_files,
        default_config_dirs=None if config_files is None else [],
    )
    if state_dir is not None:
        _keep_state_in(conf, os.path.abspath(state_dir))
    options.check(conf)
    _log(conf)
    return conf


def database(conf: cfg.ConfigOpts, *, create: bool = True) -> Database:
    """The database of the configuration.

    The file of a SQLite database comes into being unless `create` is
    False; then one that is not there is an error.
    """
    section = conf.database
    if not section.connection:
        raise options.BadConfiguration(
            'no database: connection in section [database] is not set'
        )
    try:
        path = _file_of(section.connection)
        if path and create:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        elif path and not os.path.exists(path):
            raise options.BadConfiguration(f'there is no database {path}')
        return Database(
            section.connection,
            pool_size=section.max_pool_size,
            max_overflow=section.max_overflow,
            recycle=section.connection_recycle_time,
        )
    except (sa_exc.ArgumentError, ImportError) as error:
        raise options.BadConfiguration(
            f'connection in section [database]: {error}'
        ) from error


def _file_of(url: str) -> str | None:
    """The file of a SQLite database; None of others."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != 'sqlite' or not parsed.database:
        return None
    return os.path.abspath(parsed.database)


def _keep_state_in(conf: cfg.ConfigOpts, folder: str) -> None:
    conf.set_override('state_path', folder)
    url = sa.URL.create('sqlite', database=f'{folder}/{DATABASE_FILE}')
    conf.set_default('connection', url.render_as_string(), 'database')


def _log(conf: cfg.ConfigOpts) -> None:
    # Left alone, oslo.log writes to standard output.
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        conf.set_default('use_stderr', True)
    # oslo.db logs the errors that it raises; who catches them says so.
    log.set_defaults(
        default_log_levels=[
            *log.get_default_log_levels(),
            'alembic=WARN',
            'oslo_service.backend=WARN',
            'oslo_db.sqlalchemy.exc_filters=CRITICAL',
        ]
    )
    log.setup(conf, options.PROJECT)
    if conf.debug:
        conf.log_opt_values(LOG, logging.DEBUG)  # without secret ones
