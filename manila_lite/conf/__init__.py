"""All our options, one file per area; `conf` is always an argument.

Options of libraries (database connection, message transport, policy file,
log, token check) are registered by those libraries.
"""

from collections.abc import Iterable
import itertools
from typing import Any

from oslo_config import cfg

from manila_lite.conf import api
from manila_lite.conf import auth
from manila_lite.conf import backend
from manila_lite.conf import coordination
from manila_lite.conf import core
from manila_lite.conf import database
from manila_lite.conf import dummy
from manila_lite.conf import http_basic
from manila_lite.conf import local
from manila_lite.conf import messages
from manila_lite.conf import network
from manila_lite.conf import quota
from manila_lite.conf import recovery
from manila_lite.conf import scheduler
from manila_lite.conf import service
from manila_lite.conf import share_manager
from manila_lite.conf import work
from manila_lite.conf import wsgi

PROJECT = 'manila_lite'

_AREAS = (
    core,
    api,
    auth,
    http_basic,
    coordination,
    database,
    messages,
    network,
    quota,
    recovery,
    scheduler,
    service,
    share_manager,
    work,
    wsgi,
)
_IN_BACKEND_SECTIONS = (backend, local, dummy)


class BadConfiguration(cfg.Error):
    """The configuration is readable but invalid; the text says where."""


def register_all(conf: cfg.ConfigOpts) -> None:
    """Register all options of sections with fixed names."""
    for area in _AREAS:
        area.register(conf)


def register_backend(conf: cfg.ConfigOpts, group: str) -> None:
    """Register the options of a back end in its section."""
    for part in _IN_BACKEND_SECTIONS:
        part.register_backend(conf, group)


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


def backends(conf: cfg.ConfigOpts) -> list[str]:
    """Register and check the enabled back ends; return their names."""
    names = conf.enabled_share_backends
    if not names:
        raise BadConfiguration('enabled_share_backends names no back end')
    if len(set(names)) != len(names):
        raise BadConfiguration(
            'enabled_share_backends names a back end '
            f'twice: {", ".join(names)}'
        )
    for name in names:
        register_backend(conf, name)
        for required in ('share_driver', 'driver_handles_share_servers'):
            if conf[name][required] in (None, ''):
                raise BadConfiguration(
                    f'back end "{name}": option '
                    f'{required} is missing from section '
                    f'[{name}]'
                )
    return list(names)


def check(conf: cfg.ConfigOpts) -> None:
    """Read every option once, to report invalid values at start."""
    for value in conf.values():
        if isinstance(value, cfg.ConfigOpts.GroupAttr):
            list(value.values())
    if conf.osapi_share_use_ssl:
        raise BadConfiguration(
            'osapi_share_use_ssl: the API does not speak '
            'TLS itself; use a proxy in front of it'
        )


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Return groups and options for the sample file generator."""
    example = itertools.chain.from_iterable(
        part.OPTS for part in _IN_BACKEND_SECTIONS
    )
    return [(area.GROUP, area.OPTS) for area in _AREAS] + [
        (backend.GROUP, list(example))
    ]
