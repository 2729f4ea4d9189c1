"""Check whether this release can start: `status upgrade-check`.

Output and exit codes follow the convention of OpenStack: 0 for success, 1
for warnings, 2 when the services cannot start without further action.
"""

from collections.abc import Callable, Iterator
import enum
from importlib import metadata
import textwrap
import typing

from oslo_config import cfg

from manila_lite import cmd
from manila_lite import conf as options
from manila_lite.cmd import start
from manila_lite.db import schema
from manila_lite.rpc import transport
from manila_lite.scheduler import choose
from manila_lite.share.drivers import registry

LIBRARIES = (
    'manila_lite',
    'oslo.log',
    'oslo.db',
    'oslo.messaging',
    'oslo.concurrency',
    'oslo.policy',
    'oslo.middleware.cors',
    'oslo.middleware.http_proxy_to_wsgi',
    'keystonemiddleware.auth_token',
)
"""Libraries whose options may be set in our configuration files."""

_WIDTH = 60


class Code(enum.IntEnum):
    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


class Result(typing.NamedTuple):
    name: str
    code: Code
    details: str | None = None


def run(configure: Callable[[], cfg.ConfigOpts]) -> int:
    """Run all checks, print the results and return the exit code."""
    results = list(_results(configure))
    _print(results)
    return max(result.code for result in results)


def _results(configure: Callable[[], cfg.ConfigOpts]) -> Iterator[Result]:
    try:
        conf = configure()
    except start.EXPECTED_ERRORS as error:
        yield _failure('Configuration', error)
        return  # the other checks need a configuration
    yield Result('Configuration', Code.SUCCESS)
    for name, check in (
        ('Database schema', _check_schema),
        ('Drivers', _check_drivers),
        ('Filters and weighers', _check_scheduler),
    ):
        try:
            check(conf)
        except start.EXPECTED_ERRORS as error:
            yield _failure(name, error)
        else:
            yield Result(name, Code.SUCCESS)
    old = '; '.join(deprecated(conf))
    yield Result(
        'Deprecated options',
        Code.WARNING if old else Code.SUCCESS,
        old or None,
    )


def _failure(name: str, error: Exception) -> Result:
    return Result(name, Code.FAILURE, start.one_line_message(error))


def _check_schema(conf: cfg.ConfigOpts) -> None:
    db = start.database(conf, create=False)
    try:
        schema.check(db)
    finally:
        db.dispose()


def _check_drivers(conf: cfg.ConfigOpts) -> None:
    if conf.enabled_share_backends:  # only share services have any
        for name in options.backends(conf):
            registry.load(conf[name].share_driver)


def _check_scheduler(conf: cfg.ConfigOpts) -> None:
    choose.load(conf.scheduler_default_filters, 'filters')
    choose.load(conf.scheduler_default_extend_filters, 'filters')
    choose.load(conf.scheduler_default_weighers, 'weighers')


def deprecated(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield options set in the files that are renamed or deprecated."""
    advice = dict(_advice(conf))
    for path in conf.config_file:
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(path, sections).parse()
        for section, values in sections.items():
            for name in values:
                key = section, name.replace('-', '_')
                if key in advice:
                    yield f'{path}: [{section}] {name} {advice[key]}'


def _advice(conf: cfg.ConfigOpts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield section and name of deprecated options, with advice."""
    for section, option in _known_options(conf):
        if option.deprecated_for_removal:
            yield (
                (section, option.dest),
                'will be removed: '
                f'{option.deprecated_reason or "leave it out"}',
            )
        for old in option.deprecated_opts:
            was = (old.group or section, old.name or option.name)
            yield (
                (was[0], was[1].replace('-', '_')),
                f'is now [{section}] {option.name}',
            )


def _known_options(conf: cfg.ConfigOpts) -> Iterator[tuple[str, cfg.Opt]]:
    # Loading the options of oslo.messaging requires a chosen backend.
    transport.init_backend(threading=cmd.CONCURRENCY != 'eventlet')
    example = options.backend.GROUP.name
    for library in metadata.entry_points(group='oslo.config.opts'):
        if library.name not in LIBRARIES:
            continue
        for group, opts in library.load()():
            section = getattr(group, 'name', group) or 'DEFAULT'
            for section_name in (
                conf.enabled_share_backends or ()
                if section == example
                else (section,)
            ):
                yield from ((section_name, option) for option in opts)


def _print(results: list[Result]) -> None:
    line = f'+{"-" * (_WIDTH + 2)}+'
    print(line, f'| {"Upgrade Check Results":{_WIDTH}} |', line, sep='\n')
    for result in results:
        text = (
            f'Check: {result.name}',
            f'Result: {result.code.name.capitalize()}',
            *textwrap.wrap(f'Details: {result.details}', _WIDTH),
        )
        print(*(f'| {row:{_WIDTH}} |' for row in text), line, sep='\n')
