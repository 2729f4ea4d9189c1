"""What a driver is given: the options of its section, and storage."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, overload

from oslo_config import cfg

from manila_lite import masking
import manila_lite.conf


class Configuration:
    """Options of one section: `c.option` or `c.safe_get('option')`.

    All back end options are registered. A driver registers its own with
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
        """Return a configuration of plain values; the rest are defaults."""
        configuration = cls(manila_lite.conf.new(), group)
        configuration.override(values)
        return configuration

    def override(self, values: Mapping[str, Any]) -> None:
        """Let plain values take the place of options; for tests.

        Earlier values of other options stay.
        """
        self._overrides = {**self._overrides, **values}

    def for_backend(self, group: str) -> 'Configuration | None':
        """Return the section of another back end, enabled here or not.

        Returns None if there is no such section. The settings a driver needs
        to reach a back end of another share service must appear in the
        configuration files of both services.
        """
        # Those of `serve` without a configuration file are in no section.
        enabled = self._conf.enabled_share_backends or ()
        if group not in (*enabled, *self._conf.list_all_sections()):
            return None
        return Configuration(self._conf, group)

    def other_backends(self) -> 'Iterator[Configuration]':
        """Yield the sections of the other back ends that are enabled here."""
        for group in self._conf.enabled_share_backends or ():
            if group != self.config_group:
                yield Configuration(self._conf, group)

    def append_config_values(self, opts: Iterable[cfg.Opt]) -> None:
        """Register a driver's own options in this section.

        The values of those that are declared as secret are masked in all that
        the driver says.
        """
        self._conf.register_opts(opts, group=self.config_group)
        masking.remember_secret_options(self._conf)

    def safe_get(self, name: str) -> Any:
        """Return the value of an option, or None if it does not exist."""
        try:
            return getattr(self, name)
        except cfg.NoSuchOptError:
            return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):  # not an option; maybe not yet assigned
            raise AttributeError(name)
        if name in self._overrides:
            return self._overrides[name]
        return self._conf[self.config_group][name]


class PrivateStorage(Protocol):
    """Texts by id of a resource and key, shared by all back ends.

    Ids are UUIDs: those of shares, share instances, snapshots and share
    servers, whose data is deleted together with them, or others of the
    driver's own. Every call is a transaction of its own, and durable when
    it returns.
    """

    @overload
    def get(
        self, entity_id: str, key: str, default: str | None = None
    ) -> str | None: ...

    @overload
    def get(
        self, entity_id: str, key: list[str] | None = None, default: str | None = None
    ) -> dict[str, str]: ...

    def get(
        self,
        entity_id: str,
        key: str | list[str] | None = None,
        default: str | None = None,
    ) -> str | dict[str, str] | None:
        """Return the value of a key, or `default` if there is none.

        For several keys, or without `key`, return a dict of those that
        exist.
        """

    def update(
        self,
        entity_id: str,
        details: Mapping[str, object],
        delete_existing: bool = False,
    ) -> Mapping[str, object]:
        """Set keys to the texts of these values; return `details`.

        Other keys remain, unless `delete_existing` is true. Raises
        InvalidInput for an id that is no UUID, for keys and values that
        are too long, and for values that are no text, number or bool.
        """

    def delete(self, entity_id: str, key: str | list[str] | None = None) -> None:
        """Delete one key, several, or all; missing ones are ignored."""
