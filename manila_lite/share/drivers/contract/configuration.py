"""The options of one back end's section, as its driver reads them."""

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_config import cfg

import manila_lite.conf


class Configuration:
    """The values of one section: `c.option`, or `c.safe_get('option')`.

    Every option of back ends is known; a driver makes its own known with
    `append_config_values`.
    """

    def __init__(self, conf: cfg.ConfigOpts, group: str):
        manila_lite.conf.register_backend(conf, group)
        self.config_group = group
        self._conf = conf
        self._overrides: Mapping[str, Any] = {}

    @classmethod
    def from_values(
        cls, values: Mapping[str, Any], group: str = 'backend'
    ) -> 'Configuration':
        """One made of plain values, with the defaults of all others."""
        configuration = cls(manila_lite.conf.new(), group)
        configuration._overrides = dict(values)
        return configuration

    def for_backend(self, group: str) -> 'Configuration | None':
        """The section of another back end, enabled here or not.

        None when there is no such section. What a driver needs to reach a
        back end of another share service must stand in the files of both.
        """
        if group not in self._conf.list_all_sections():
            return None
        return Configuration(self._conf, group)

    def append_config_values(self, opts: Iterable[cfg.Opt]) -> None:
        """Make a driver's own options known in this section."""
        self._conf.register_opts(opts, group=self.config_group)

    def safe_get(self, name: str) -> Any:
        """The value of an option; None when there is no such option."""
        try:
            return getattr(self, name)
        except cfg.NoSuchOptError:
            return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):  # never an option; not yet made, perhaps
            raise AttributeError(name)
        if name in self._overrides:
            return self._overrides[name]
        return self._conf[self.config_group][name]
