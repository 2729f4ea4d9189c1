"""All our options, by area; `conf` is always an argument.

Options of libraries (database connection, message transport, policy file,
log, token check) are registered by those libraries.
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import dataclasses
import datetime
import itertools
import operator
from typing import Any

from oslo_config import cfg

from manila_lite.conf import (
    api,
    backend,
    btrfs,
    cephfs,
    coordination,
    core,
    database,
    dummy,
    events,
    http_basic,
    local,
    monitoring,
    network,
    quota,
    recovery,
    resources,
    retention,
    scheduler,
    service,
    share_manager,
    ui,
    work,
    wrong_values,
    wsgi,
)

PROJECT = 'manila_lite'

_AREAS = (
    core,
    api,
    http_basic,
    coordination,
    database,
    events,
    monitoring,
    network,
    quota,
    recovery,
    retention,
    scheduler,
    service,
    share_manager,
    resources,
    ui,
    work,
    wsgi,
)
_IN_BACKEND_SECTIONS = (backend, local, btrfs, cephfs, dummy)


class BadConfiguration(cfg.Error):
    """The configuration is readable but invalid; the text says where."""


def register_all(conf: cfg.ConfigOpts) -> None:
    """Register all options of sections with fixed names."""
    for area in _AREAS:
        if area.GROUP is not None:
            # oslo.config would store values that are set in the program in
            # the group of the area, for all configurations of the process.
            conf.register_group(cfg.OptGroup(area.GROUP.name, title=area.GROUP.title))
        conf.register_opts(area.OPTS, area.GROUP)


def register_backend(conf: cfg.ConfigOpts, group: str) -> None:
    """Register the options of a back end in its section."""
    for part in _IN_BACKEND_SECTIONS:
        conf.register_opts(part.OPTS, group)
    dummy.set_default_folder(conf, group)


def new(args: Iterable[str] = (), files: Iterable[str] = ()) -> cfg.ConfigOpts:
    """Return a separate configuration, read from arguments and files."""
    conf = cfg.ConfigOpts()
    register_all(conf)
    conf(
        list(args),
        project=PROJECT,
        default_config_files=list(files),
        default_config_dirs=[],
    )
    return conf


@dataclasses.dataclass(frozen=True)
class Option:
    """Annotates a parameter that is given the value of an option.

    `name` is that of the option, after that of its group and a dot if it has
    one. `convert` makes the parameter from the value.
    """

    name: str
    convert: Callable[[Any], Any] | None = None

    def read(self, conf: cfg.ConfigOpts) -> Any:
        value = operator.attrgetter(self.name)(conf)
        return value if self.convert is None else self.convert(value)


def seconds(number: float) -> datetime.timedelta:
    """Convert the value of an option that is a number of seconds."""
    return datetime.timedelta(seconds=number)


def upper_names(names: Iterable[str]) -> frozenset[str]:
    """Convert the value of an option that is a list of names."""
    return frozenset(name.upper() for name in names)


def backends(conf: cfg.ConfigOpts) -> list[str]:
    """Register and check the enabled back ends; return their names."""
    names = conf.enabled_share_backends
    if not names:
        raise BadConfiguration('enabled_share_backends names no back end')
    if len(set(names)) != len(names):
        raise BadConfiguration(
            f'enabled_share_backends names a back end twice: {", ".join(names)}'
        )
    with all_errors(conf) as collect:
        for name in names:
            register_backend(conf, name)
            with collect(name):
                _check_backend(conf, name)
    return list(names)


def _check_backend(conf: cfg.ConfigOpts, name: str) -> None:
    missing = [
        f'option {required} is missing'
        for required in ('share_driver', 'driver_handles_share_servers')
        if conf[name][required] in (None, '')
    ]
    if missing:
        raise BadConfiguration(f'{" and ".join(missing)} in section [{name}]')
    _check_values(conf, name)


def _check_values(conf: cfg.ConfigOpts, section: str | None = None) -> None:
    wrong = wrong_values.find(conf, section)
    if wrong:
        raise BadConfiguration('; '.join(wrong))


Collect = Callable[[str], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def all_errors(conf: cfg.ConfigOpts, *expected: type[Exception]) -> Iterator[Collect]:
    """Yield a context manager per back end; report all errors at the end.

    One bad back end must not hide the next.
    """
    errors: list[str] = []
    collected: tuple[type[Exception], ...] = (cfg.Error, ValueError, *expected)

    @contextlib.contextmanager
    def collect(name: str) -> Iterator[None]:
        try:
            yield
        except collected as error:
            text = wrong_values.describe(conf, error, name)
            errors.append(f'back end "{name}": {text}')

    yield collect
    if errors:
        raise BadConfiguration('; '.join(errors))


def check(conf: cfg.ConfigOpts) -> None:
    """Read every option once, to report invalid values at start."""
    _check_values(conf)
    if conf.osapi_share_use_ssl:
        raise BadConfiguration(
            'osapi_share_use_ssl: the API does not speak '
            'TLS itself; use a proxy in front of it'
        )


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Return groups and options for the sample file generator."""
    example = itertools.chain.from_iterable(part.OPTS for part in _IN_BACKEND_SECTIONS)
    return [(area.GROUP, area.OPTS) for area in _AREAS] + [
        (backend.GROUP, list(example))
    ]
