"""Drivers, found by entry point name or by dotted path."""

import functools
import importlib
from importlib import metadata
import inspect

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers.base import ShareDriver

LOG = log.getLogger(__name__)

ENTRY_POINTS = 'manila_lite.share.drivers'

# Paths in configuration files written for OpenStack Manila.
_REPLACEMENTS = {'manila.tests.share.drivers.dummy.DummyDriver': 'dummy'}


def load(name: str) -> type[ShareDriver]:
    """Return the driver class of that name; raises BadConfiguration."""
    if name in _REPLACEMENTS:
        LOG.warning(
            'Using driver "%(new)s" instead of share_driver %(old)s',
            {'old': name, 'new': _REPLACEMENTS[name]},
        )
        name = _REPLACEMENTS[name]
    path = driver_paths().get(name, name)
    driver_class = _import(name, path)
    if not (
        inspect.isclass(driver_class) and issubclass(driver_class, ShareDriver)
    ):
        raise _unusable(name, f'{path} is not a ShareDriver')
    if inspect.isabstract(driver_class):
        missing = ', '.join(sorted(driver_class.__abstractmethods__))
        raise _unusable(name, f'{path} lacks {missing}')
    return driver_class


@functools.cache
def driver_paths() -> dict[str, str]:
    """Return the dotted paths of the installed drivers, by name.

    Cached: installed packages do not change while the process runs.
    """
    return {
        point.name: point.value.replace(':', '.')
        for point in metadata.entry_points(group=ENTRY_POINTS)
    }


def _import(name: str, path: str) -> object:
    module, _, attribute = path.rpartition('.')
    if not module:
        raise _unusable(
            name,
            'known drivers are '
            f'{", ".join(sorted(driver_paths()))}; specify any other as '
            'package.module.Class',
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _unusable(name, str(error)) from error


def _unusable(name: str, reason: str) -> exception.BadConfiguration:
    return exception.BadConfiguration(
        reason=f'share_driver "{name}" cannot be used: {reason}'
    )
