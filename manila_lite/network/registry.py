"""Load network plug-ins by the name of an entry point."""

import importlib
from importlib import metadata
import inspect
import logging
import typing

from manila_lite import exception
from manila_lite.conf import network as options
from manila_lite.db.session import Database
from manila_lite.network.base import USER
from manila_lite.network.base import NetworkPlugin

LOG = logging.getLogger(__name__)

ENTRY_POINTS = 'manila_lite.network'

# Class paths in configuration files that were written for Manila.
_SUCCESSORS = {
    'manila.network.standalone_network_plugin.StandaloneNetworkPlugin': (
        'standalone'
    )
}


def load(
    db: Database, conf: typing.Any, group: str, label: str = USER
) -> NetworkPlugin:
    """Create the plug-in configured in a section.

    Raises NetworkBadConfigurationException.
    """
    values = options.values(conf, group)
    name = values['network_api_class']
    if name in _SUCCESSORS:
        LOG.warning(
            'network_api_class %s: the plug-in "%s" is used instead.',
            name,
            _SUCCESSORS[name],
        )
        name = _SUCCESSORS[name]
    return _find(name)(db, values, group=group, label=label)


def known_plugins() -> dict[str, str]:
    """Return the installed plug-ins: class path by name."""
    return {
        point.name: point.value
        for point in metadata.entry_points(group=ENTRY_POINTS)
    }


def _find(name: str) -> type[NetworkPlugin]:
    path = known_plugins().get(name)
    if path is None:
        raise _bad_plugin(
            name, f'known plug-ins are {", ".join(sorted(known_plugins()))}'
        )
    module, _, attribute = path.partition(':')
    cls = getattr(importlib.import_module(module), attribute, None)
    if not (inspect.isclass(cls) and issubclass(cls, NetworkPlugin)):
        raise _bad_plugin(name, f'{path} is not a NetworkPlugin')
    return cls


def _bad_plugin(name: str, reason: str) -> exception.ManilaLiteError:
    return exception.NetworkBadConfigurationException(
        reason=f'network_api_class "{name}" cannot be used: {reason}'
    )
