"""Load network plug-ins by the name of an entry point."""

import inspect
import logging

from oslo_config import cfg

from manila_lite import exception, plugins
from manila_lite.conf import network as options
from manila_lite.db.session import Database
from manila_lite.network.base import USER, NetworkPlugin

LOG = logging.getLogger(__name__)

ENTRY_POINTS = 'manila_lite.network'

# Class paths in configuration files that were written for Manila.
_SUCCESSORS = {
    'manila.network.standalone_network_plugin.StandaloneNetworkPlugin': ('standalone')
}


def load(
    db: Database, conf: cfg.ConfigOpts, group: str, label: str = USER
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


def _find(name: str) -> type[NetworkPlugin]:
    try:
        found = plugins.load(ENTRY_POINTS, name)
    except plugins.UnusablePlugin as error:
        raise _bad_plugin(name, str(error)) from error
    if not (inspect.isclass(found) and issubclass(found, NetworkPlugin)):
        raise _bad_plugin(name, 'it is not a NetworkPlugin')
    return found


def _bad_plugin(name: str, reason: str) -> exception.ManilaLiteError:
    return exception.NetworkBadConfigurationException(
        reason=f'network_api_class "{name}" cannot be used: {reason}'
    )
