"""Which options the configuration files set, and which of them are unknown.

oslo.config reads what is registered and nothing else, so a misspelt name
would silently leave the default in effect.
"""

from collections.abc import Iterable, Iterator
import difflib
import functools
from importlib import metadata
import logging
import typing

from oslo_config import cfg

from manila_lite import cmd, conf as options
from manila_lite.conf import ignored, network, wrong_values
from manila_lite.rpc import transport

LOG = logging.getLogger(__name__)

_LOADED = ('manila_lite', 'manila_lite.database', 'oslo.log', 'oslo.concurrency')
"""Libraries that all services have imported anyway."""

_LOADED_IF_NEEDED = (*_LOADED, 'oslo.messaging')
"""With oslo.messaging, which imports the libraries of all brokers.

Most of its options are registered when the broker is connected.
"""

LIBRARIES = (
    *_LOADED_IF_NEEDED,
    'oslo.policy',
    'oslo.reports',
    'oslo.middleware.cors',
    'oslo.middleware.http_proxy_to_wsgi',
    'keystonemiddleware.auth_token',
)
"""Libraries whose options may be set in our configuration files."""

_OF_SOME_SERVICES = frozenset(
    {
        'cors',
        'keystone_authtoken',
        'oslo_messaging_kafka',
        'oslo_messaging_notifications',
        'oslo_messaging_rabbit',
        'oslo_middleware',
        'oslo_policy',
        'oslo_reports',
    }
)
"""Sections of libraries that a service may not need.

They are left to `status upgrade-check`, which imports all libraries.
"""

_BACKEND = options.backend.GROUP.name
_NETWORK_SECTIONS = ('network_config_group', 'admin_network_config_group')
_UNLISTED = ('oslo_messaging_metrics', 'oslo_messaging_tracing')
"""Sections of oslo.messaging whose options it does not list."""


class Setting(typing.NamedTuple):
    """An option that a file sets; `name` as written there."""

    path: str
    section: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """Section and name, as options are looked up."""
        return self.section, self.name.replace('-', '_')

    def __str__(self) -> str:
        return f'{self.path}: [{self.section}] {self.name}'


class Findings(typing.NamedTuple):
    """What is wrong with the names in the files, in words."""

    unknown: list[str]
    ignored: list[tuple[Setting, str]]
    """With the reason."""


def settings(conf: cfg.ConfigOpts) -> Iterator[Setting]:
    """Yield every option that the files of a configuration set."""
    for path, sections in wrong_values.sections(conf):
        for section, values in sections.items():
            yield from (Setting(path, section, name) for name in values)


def register_token_options(conf: cfg.ConfigOpts) -> None:
    """Register the options with which the API validates tokens."""
    for section, option in known_options(conf, ('keystonemiddleware.auth_token',)):
        conf.register_opt(option, section)


def known_options(
    conf: cfg.ConfigOpts, libraries: Iterable[str] = LIBRARIES
) -> Iterator[tuple[str, cfg.Opt]]:
    """Yield section and option of everything that libraries declare.

    Options of back ends are yielded for each enabled one.
    """
    for section, option in _declared(tuple(libraries)):
        for section_name in (
            conf.enabled_share_backends or () if section == _BACKEND else (section,)
        ):
            yield section_name, option


def warn(conf: cfg.ConfigOpts, *, has_backends: bool) -> None:
    """Log options in the files that have no effect, as far as is known here.

    All objects have been built, so the options they need are registered.
    Third-party drivers have registered theirs where back ends are.
    """
    found = find(conf, _LOADED, has_backends=has_backends)
    if found.unknown:
        found = find(conf, _LOADED_IF_NEEDED, has_backends=has_backends)
    for text in found.unknown:
        LOG.warning('%s', text)
    if found.ignored:
        LOG.info(
            'These options are ignored, "status upgrade-check" says why: %s',
            ', '.join(
                f'[{setting.section}] {setting.name}' for setting, _ in found.ignored
            ),
        )


def find(
    conf: cfg.ConfigOpts,
    libraries: Iterable[str] = LIBRARIES,
    *,
    has_backends: bool = True,
) -> Findings:
    """Return what the files set although nothing reads it."""
    found = Findings([], [])
    names = _Names(conf, libraries)
    unknown_sections = set()
    for setting in settings(conf):
        section, name = setting.key
        if names.has(section, name):
            continue
        is_backend = section in names.backends
        why = ignored.reason(section, name, is_backend=is_backend)
        if why is None and section == 'DEFAULT' and name in names.of_backends:
            why = 'it is read in the sections of back ends only'
        if why is not None:
            found.ignored.append((setting, why))
        elif is_backend:
            if has_backends:
                found.unknown.append(names.describe(setting))
        elif not names.has_section(section):
            unknown_sections.add((setting.path, section))
        elif names.is_complete(section):
            found.unknown.append(names.describe(setting))
    for path, section in sorted(unknown_sections):
        found.unknown.append(
            f'{path}: section [{section}] is unknown'
            f'{_suggestion(section, names.sections, "[{}]")}'
        )
    return found


class _Names:
    """The names of options that are known, by section."""

    def __init__(self, conf: cfg.ConfigOpts, libraries: Iterable[str]):
        self._conf = conf
        self._all = tuple(libraries) == LIBRARIES
        self._by_section: dict[str, set[str]] = {}
        self.of_backends = {option.dest for option in network.OPTS}
        for section, option in _declared(tuple(libraries)):
            if section == _BACKEND:
                self.of_backends |= set(_names_of(option))
                continue
            for old in option.deprecated_opts:
                self._add(old.group or section, old.name or option.name)
            self._add(section, option.dest)
        self.backends = set(conf.enabled_share_backends or ())
        for _, sections in wrong_values.sections(conf):
            for section, values in sections.items():
                if 'share_driver' in values:  # of another node, perhaps
                    self.backends.add(section)
                for option_name in _NETWORK_SECTIONS:
                    self.backends |= set(values.get(option_name, ()))
        self.backends -= {'DEFAULT'}
        if self._all and 'keystone_authtoken' in conf.list_all_sections():
            self._add_auth_plugins()

    def _add(self, section: str, name: str) -> None:
        self._by_section.setdefault(section, set()).add(name.replace('-', '_'))

    def _add_auth_plugins(self) -> None:
        """Add the options of all ways to sign in to the identity service."""
        from keystoneauth1 import loading

        loaders: Iterable[typing.Any] = loading.get_available_plugin_loaders().values()
        for loader in loaders:
            for known in loader.get_options():
                for name in (known, *known.deprecated):
                    self._add('keystone_authtoken', name.dest)
        for common in loading.get_auth_common_conf_options():
            self._add('keystone_authtoken', common.dest)

    @property
    def sections(self) -> set[str]:
        return {*self._by_section, *_OF_SOME_SERVICES, *self.backends}

    def has_section(self, section: str) -> bool:
        return section in self.sections

    def is_complete(self, section: str) -> bool:
        """Whether all options of a section are known."""
        return self._all or section not in _OF_SOME_SERVICES

    def has(self, section: str, name: str) -> bool:
        if section in _UNLISTED:
            return True
        if section in self.backends and name in self.of_backends:
            return True
        return name in self._by_section.get(section, ()) or self._is_live(section, name)

    def _is_live(self, section: str, name: str) -> bool:
        """Whether the option is registered in this process."""
        if section == 'DEFAULT':
            return name in self._conf
        return section in self._conf and name in self._conf[section]

    def describe(self, setting: Setting) -> str:
        section, name = setting.key
        candidates = (
            self.of_backends
            if section in self.backends
            else self._by_section.get(section, set())
        )
        others = [
            other for other, names in sorted(self._by_section.items()) if name in names
        ]
        hint = (
            f'; it belongs to [{others[0]}]'
            if others
            else _suggestion(name, candidates, '{}')
        )
        return f'{setting} is unknown{hint}'


def _suggestion(name: str, known: Iterable[str], form: str) -> str:
    close = difflib.get_close_matches(name, sorted(known), 1, 0.75)
    return f'; did you mean {form.format(close[0])}?' if close else ''


def _names_of(option: cfg.Opt) -> Iterator[str]:
    yield option.dest
    for old in option.deprecated_opts:
        yield (old.name or option.name).replace('-', '_')


@functools.cache
def _declared(libraries: tuple[str, ...]) -> list[tuple[str, cfg.Opt]]:
    # Loading the options of oslo.messaging requires a chosen backend.
    transport.init_backend(threading=cmd.CONCURRENCY != 'eventlet')
    return [
        (getattr(group, 'name', group) or 'DEFAULT', option)
        for library in metadata.entry_points(group='oslo.config.opts')
        if library.name in libraries
        for group, opts in library.load()()
        for option in opts
    ]
