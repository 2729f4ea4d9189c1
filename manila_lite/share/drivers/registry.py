"""Drivers, found by entry point name or by dotted path."""

import inspect

from oslo_log import log
from oslo_utils import importutils

from manila_lite import exception, plugins
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
    driver_class = _find(name)
    if not (inspect.isclass(driver_class) and issubclass(driver_class, ShareDriver)):
        raise _unusable(name, 'it is not a ShareDriver')
    if inspect.isabstract(driver_class):
        missing = ', '.join(sorted(driver_class.__abstractmethods__))
        raise _unusable(name, f'it lacks {missing}')
    return driver_class


def _find(name: str) -> object:
    try:
        if '.' in name:
            return importutils.import_class(name)
        return plugins.load(ENTRY_POINTS, name)
    except ImportError as error:
        raise _unusable(name, str(error)) from error
    except plugins.UnusablePlugin as error:
        raise _unusable(
            name, f'{error}; specify any other as package.module.Class'
        ) from error


def _unusable(name: str, reason: str) -> exception.BadConfiguration:
    return exception.BadConfiguration(
        reason=f'share_driver "{name}" cannot be used: {reason}'
    )
