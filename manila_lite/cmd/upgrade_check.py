"""Check whether this release can start: `status upgrade-check`.

Output and exit codes follow the convention of OpenStack: 0 for success, 1
for warnings, 2 when the services cannot start without further action.
"""

from collections.abc import Callable, Iterable, Iterator
import functools

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result

from manila_lite import conf as options, exception, release
from manila_lite.cmd import console, data_migrations, known_options, lock_reach, start
from manila_lite.db import errors, schema
from manila_lite.db.queries.services import releases
from manila_lite.rpc import contracts
from manila_lite.scheduler import choose
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.contract.configuration import Configuration

Check = Callable[[cfg.ConfigOpts], str | None]
"""Returns advice for a warning, raises on failure."""


class _NotChecked(Exception):
    """Something is not for this account to check."""


class _Results(upgradecheck.UpgradeCommands):
    """The results of all checks, which `check` prints."""

    def __init__(self, results: Iterable[tuple[str, Result]]):
        self._upgrade_checks = tuple(
            (name, functools.partial(_get, result=result)) for name, result in results
        )


def _get(commands: upgradecheck.UpgradeCommands, *, result: Result) -> Result:
    return result


def run(configure: Callable[[], cfg.ConfigOpts]) -> int:
    """Run all checks, print the results and return the exit code."""
    return int(_Results(_results(configure)).check())


def _results(configure: Callable[[], cfg.ConfigOpts]) -> Iterator[tuple[str, Result]]:
    try:
        conf = configure()
    except start.EXPECTED_ERRORS as error:
        yield 'Configuration', _failure(error)
        return  # the other checks need a configuration
    yield 'Configuration', Result(Code.SUCCESS)
    checks: tuple[tuple[str, Check], ...] = (
        ('Database schema', _check_schema),
        ('Contraction of the schema', _check_contraction),
        ('Migrations of data', _check_data_migrations),
        ('Releases of live services', _check_releases),
        ('Accepted work', _check_work),
        ('Drivers', _check_drivers),
        ('Filters and weighers', _check_scheduler),
        ('Lock service', _check_locks),
        ('Token cache', _check_token_cache),
        ('Unknown options', _check_unknown_options),
        ('Deprecated options', _check_deprecated_options),
        ('Ignored options', _check_ignored_options),
    )
    for name, check in checks:
        try:
            advice = check(conf)
        except _NotChecked as reason:
            yield name, Result(Code.SUCCESS, str(reason))
        except start.EXPECTED_ERRORS as error:
            yield name, _failure(error)
        else:
            yield (name, Result(Code.WARNING if advice else Code.SUCCESS, advice))


def _failure(error: Exception) -> Result:
    return Result(Code.FAILURE, start.one_line_message(error))


def _check_schema(conf: cfg.ConfigOpts) -> str | None:
    with console.database(conf) as db:
        found = schema.version(db)
        if found is not None and found < schema.HEAD:
            raise schema.SchemaMismatch(
                found=f'has schema {found}, {_steps(found)} behind '
                f'{schema.HEAD} of this release',
                advice='run "manila-lite-manage db sync"',
            )
        schema.check(db)
    if found == schema.HEAD:
        return None
    return (
        f'The database has schema {found} of a newer release, ahead of '
        f'{schema.HEAD} of this one, which can go on with it'
    )


def _steps(found: str) -> str:
    """Return how many migrations there are after a revision."""
    from alembic import script, util

    directory = script.ScriptDirectory.from_config(schema.configuration())
    try:
        count = len(list(directory.iterate_revisions('head', found)))
    except util.CommandError:  # it is not one of ours
        return 'unknown, and'
    return f'{count} migration{"s" * (count != 1)}'


def _check_releases(conf: cfg.ConfigOpts) -> str | None:
    with console.database(conf) as db:
        found = db.read(releases.list_live_in_any_schema, conf.service_down_time)
    releases.require_near(found, releases.current(), conf.service_down_time)
    others = [row for row in found if row.release_number != release.NUMBER]
    if not others:
        return None
    return (
        f'This is release {release.NUMBER}; {releases.describe(others)}. '
        'API processes are not registered'
    )


def _check_contraction(conf: cfg.ConfigOpts) -> None:
    with console.database(conf) as db:
        db.read(releases.check_contraction, conf.service_down_time)
        db.read(data_migrations.check_contraction)


def _check_data_migrations(conf: cfg.ConfigOpts) -> str | None:
    with console.database(conf) as db:
        if (schema.version(db) or '') < schema.HEAD:
            return None  # they come after those of the schema
        try:
            waiting = db.read(data_migrations.count_waiting)
        except errors.Denied as error:
            raise _NotChecked(
                'The account of this service may not count the rows; it is checked on '
                'controllers, which migrate them'
            ) from error
    if not waiting:
        return None
    return (
        'Rows wait for migrations of data: '
        f'{data_migrations.describe(waiting)}. When all processes run this '
        'release, run "manila-lite-manage db online_data_migrations"'
    )


def _check_work(conf: cfg.ConfigOpts) -> str | None:
    with console.database(conf) as db:
        if schema.version(db) is None:
            return None
        unknown = [
            f'{row.number} of kind {row.kind}'
            for row in db.read(releases.count_kinds)
            if row.kind not in contracts.WORK
        ]
        if unknown:
            return (
                'Work that this release does not know waits for a newer one: '
                + ', '.join(unknown)
            )
        if (schema.version(db) or '') < schema.HEAD:
            return None  # no release has recorded yet what work needs
        waiting = db.read(releases.list_waiting, conf.service_down_time)
    return (
        '; '.join(
            f'{row.number} of kind {row.kind} on {row.queue} wait until a '
            f'process there has release {row.needs_release}'
            for row in waiting
        )
        or None
    )


def _check_locks(conf: cfg.ConfigOpts) -> str | None:
    with console.database(conf, ready=True) as db:
        return lock_reach.failure_reason(conf, db)


def _check_token_cache(conf: cfg.ConfigOpts) -> None:
    if conf.auth_strategy == 'keystone':
        from manila_lite.api.auth import keystone

        known_options.register_token_options(conf)
        keystone.require_cache_library(conf)


def _check_deprecated_options(conf: cfg.ConfigOpts) -> str | None:
    return '; '.join(deprecated(conf)) or None


def _check_unknown_options(conf: cfg.ConfigOpts) -> None:
    found = known_options.find(conf)
    if found.unknown:
        raise options.BadConfiguration('; '.join(found.unknown))


def _check_ignored_options(conf: cfg.ConfigOpts) -> str | None:
    found = known_options.find(conf)
    return '; '.join(f'{setting}: {why}' for setting, why in found.ignored) or None


def _check_drivers(conf: cfg.ConfigOpts) -> None:
    if not conf.enabled_share_backends:  # only share services have any
        return
    with options.all_errors(conf, exception.ManilaLiteError) as collect:
        for name in options.backends(conf):
            with collect(name):
                _register_driver_options(conf, name)


def _register_driver_options(conf: cfg.ConfigOpts, name: str) -> None:
    """Load the driver of a back end; create it if it is not one of ours.

    Other drivers register their options when they are created.
    """
    driver_class: Callable = registry.load(conf[name].share_driver)
    if not driver_class.__module__.startswith('manila_lite.'):
        driver_class(configuration=Configuration(conf, name), private_storage=None)


def _check_scheduler(conf: cfg.ConfigOpts) -> None:
    choose.load(conf.scheduler_default_filters, 'filters')
    choose.load(conf.scheduler_default_extend_filters, 'filters')
    choose.load(conf.scheduler_default_weighers, 'weighers')


def deprecated(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield options set in the files that are renamed or deprecated."""
    advice = dict(_advice(conf))
    for setting in known_options.settings(conf):
        if setting.key in advice:
            yield f'{setting} {advice[setting.key]}'


def _advice(conf: cfg.ConfigOpts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield section and name of deprecated options, with advice."""
    for section, option in known_options.known_options(conf):
        if option.deprecated_for_removal:
            yield (
                (section, option.dest),
                f'will be removed: {option.deprecated_reason or "leave it out"}',
            )
        for old in option.deprecated_opts:
            was = (old.group or section, old.name or option.name)
            yield (
                (was[0], was[1].replace('-', '_')),
                f'is now [{section}] {option.name}',
            )
