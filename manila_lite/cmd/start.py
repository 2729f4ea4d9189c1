"""Shared by all commands: configuration, log, database and errors."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
from importlib import metadata
import itertools
import logging
import os
import pwd
import sqlite3
import sys

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc

from manila_lite import conf as options, exception, masking
from manila_lite.cmd import CONCURRENCY, logs
from manila_lite.conf import wrong_values
from manila_lite.db import (
    engines,
    errors as db_errors,
    options as db_options,
    schema,
    sqlite_file,
)
from manila_lite.db.queries.services import releases
from manila_lite.db.session import Database

LOG = logging.getLogger(__name__)

DATABASE_FILE = 'manila_lite.sqlite'
"""Name of the database file in a state directory."""

EXPECTED_ERRORS = (
    cfg.Error,
    log.LogConfigError,
    exception.ManilaLiteError,
    db_exc.DBError,
    sa_exc.SQLAlchemyError,
    sqlite3.Error,
    OSError,
)
"""Errors that an operator can fix; any other is a bug."""

_DATABASE_ERRORS = (db_exc.DBError, sa_exc.DBAPIError, sqlite3.Error)


@contextlib.contextmanager
def report_errors(prog: str) -> Iterator[None]:
    """Report errors that an operator can fix in one line; exit code 1."""
    try:
        yield
    except EXPECTED_ERRORS as error:
        LOG.debug('%s failed', prog, exc_info=True)
        sys.exit(f'{prog}: {one_line_message(error)}')
    except KeyboardInterrupt:
        sys.exit(130)  # the shell convention for SIGINT


@contextlib.contextmanager
def if_possible(what: str) -> Iterator[None]:
    """Go on without something that the database does not allow now.

    For what is repeated later: another process may be frozen in a
    transaction with the row that is needed.
    """
    try:
        yield
    except db_errors.UNAVAILABLE as error:
        LOG.warning('%s is left for later: %s', what, one_line_message(error))


def one_line_message(error: BaseException) -> str:
    """Return the error as one line, without SQL and without passwords."""
    cause = getattr(error, 'inner_exception', None) or error
    cause = getattr(cause, 'orig', None) or cause
    words = wrong_values.describe(cfg.CONF, cause)
    text = ' '.join(words.split()) or type(cause).__name__
    if isinstance(error, _DATABASE_ERRORS):
        text = f'database error: {text}'
    return masking.mask(text)


def configure(
    prog: str,
    argv: Sequence[str] = (),
    *,
    config_files: Sequence[str] | None = None,
    state_dir: str | None = None,
    as_owner: bool = False,
    conf: cfg.ConfigOpts = cfg.CONF,
) -> cfg.ConfigOpts:
    """Read and check the configuration, set up the log; return the conf.

    `config_files` apply when `argv` names no file; when they are None,
    the default locations are searched. `state_dir` also holds a SQLite
    database unless a file configures another one. With `as_owner`, root
    becomes the owner of the state directory when the files are read.
    """
    conf.reset()
    options.register_all(conf)
    db_options.register(conf)
    log.register_options(conf)
    with wrong_values.raised():
        conf(
            list(argv),
            project=options.PROJECT,
            prog=prog,
            version=metadata.version('manila_lite'),
            default_config_files=(None if config_files is None else list(config_files)),
            default_config_dirs=None if config_files is None else [],
        )
    if state_dir is not None:
        _use_state_dir(conf, os.path.abspath(state_dir))
    if as_owner and conf.config_file and os.geteuid() == 0:
        wrong_values.remember_sections(conf)
        _become_owner(conf.state_path)
    options.check(conf)
    _set_up_log(conf)
    return conf


def database(
    conf: cfg.ConfigOpts,
    *,
    create: bool = True,
    pause: Callable[[float], None] | None = None,
) -> Database:
    """Return the configured database.

    A SQLite database is created on first use unless `create` is False;
    then a missing file is an error. With `pause`, which sleeps, wait for a
    server that does not answer yet, as [database] max_retries says.
    """
    section = conf.database
    if not section.connection:
        raise options.BadConfiguration(
            'no database: connection in section [database] is not set'
        )
    try:
        path = _sqlite_file(section.connection)
        if path and create:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        elif path and not os.path.exists(path):
            raise options.BadConfiguration(f'database {path} does not exist')
        if path:
            sqlite_file.check(path)
        db = Database(
            engines.with_driver(section.connection, threads=CONCURRENCY == 'threading'),
            retry_limit=conf.transaction_retry_limit,
            **db_options.engine_options(section),
        )
    except (sa_exc.ArgumentError, ImportError) as error:
        raise options.BadConfiguration(
            f'connection in section [database]: {error}'
        ) from error
    if pause is not None:
        _wait_for_server(db, section, pause)
    return db


def check_database(conf: cfg.ConfigOpts, db: Database) -> None:
    """Check that this release may use the database, as others do now.

    Raises SchemaMismatch or ReleasesTooFarApart.
    """
    schema.check(db)
    db.read(releases.check, releases.current(), conf.service_down_time)


def _wait_for_server(
    db: Database, section: cfg.ConfigOpts.GroupAttr, pause: Callable[[float], None]
) -> None:
    """Connect, `max_retries` times more if the server does not answer."""
    attempts = (
        itertools.count() if section.max_retries < 0 else range(section.max_retries)
    )
    for _ in attempts:
        try:
            with engines.connected(db.engine):
                return
        except db_exc.DBConnectionError as error:
            LOG.warning(
                'Trying again in %d s: %s',
                section.retry_interval,
                one_line_message(error),
            )
            pause(section.retry_interval)


def _sqlite_file(url: str) -> str | None:
    """Return the file of a SQLite database; None for other databases."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != 'sqlite' or not parsed.database:
        return None
    return os.path.abspath(parsed.database)


def _use_state_dir(conf: cfg.ConfigOpts, folder: str) -> None:
    conf.set_override('state_path', folder)
    url = sa.URL.create('sqlite', database=f'{folder}/{DATABASE_FILE}')
    conf.set_default('connection', url.render_as_string(), 'database')


def _become_owner(folder: str) -> None:
    """Give up the rights of root for those of another owner of a directory."""
    try:
        owner = pwd.getpwuid(os.stat(folder).st_uid)
    except (FileNotFoundError, KeyError):  # not there, or of no known user
        return
    if owner.pw_uid == 0:
        return
    os.initgroups(owner.pw_name, owner.pw_gid)
    os.setgid(owner.pw_gid)
    os.setuid(owner.pw_uid)
    os.environ['HOME'] = owner.pw_dir


def _set_up_log(conf: cfg.ConfigOpts) -> None:
    # Left alone, oslo.log writes to standard output.
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        conf.set_default('use_stderr', True)
    # oslo.db logs errors before raising them; our handlers log them, too.
    log.set_defaults(
        default_log_levels=[
            *log.get_default_log_levels(),
            'alembic=WARN',
            'oslo_service.backend=WARN',
            'oslo_db.sqlalchemy.exc_filters=CRITICAL',
        ]
    )
    logs.parse(conf.default_log_levels)
    log.setup(conf, options.PROJECT)
    masking.remember_secret_options(conf)
    logs.install()
    if conf.debug:
        conf.log_opt_values(LOG, logging.DEBUG)  # masks secrets
