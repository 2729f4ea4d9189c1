"""What the documentation takes from the code.

Directives show what the code declares: options, policy rules, state
tables, versions. Roles name something of the code and warn when there is
no such thing; the build treats warnings as errors.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
import functools
import importlib
from importlib import metadata
import pathlib
import pkgutil
import re
import runpy
from types import ModuleType

from docutils import nodes
from oslo_config import cfg
from oslo_policy import policy
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.docutils import SphinxRole
import state_diagram

from manila_lite import conf
from manila_lite import messages
from manila_lite import policies
from manila_lite import states
from manila_lite.api import versions
from manila_lite.conf import backend
from manila_lite.policies import base as personas
from manila_lite.states import machine as machines

LOG = logging.getLogger(__name__)

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
DIFFERENCES = CHECKOUT / 'tests/functional/api/differences.py'

Lines = Iterator[str]


# What the code declares


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """The modules of a package, by name."""
    for found in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f'{package.__name__}.{found.name}')


def state_tables() -> list[machines.Machine]:
    """Every state table there is."""
    found = {
        value
        for module in modules(states)
        for value in vars(module).values()
        if isinstance(value, machines.Machine)
    }
    return sorted(found, key=lambda table: (table.resource, table.column))


def first_line(thing: object) -> str:
    """What a docstring begins with, as a phrase without its full stop."""
    return (thing.__doc__ or '').split('\n')[0].rstrip('.')


# Tables of reStructuredText


def table(
    head: Iterable[str], rows: Iterable[Iterable[str]], widths: str = 'auto'
) -> Lines:
    yield from (
        '.. list-table::',
        '   :header-rows: 1',
        f'   :widths: {widths}',
        '',
    )
    for first, *others in (head, *rows):
        yield f'   * - {first}'
        yield from (f'     - {cell}' for cell in others)
    yield ''


def heading(text: str) -> Lines:
    yield from ('', text, '-' * len(text), '')


def code(text: object) -> str:
    return f'``{text}``'


def prose(text: str) -> str:
    """Text from the code, where a backtick is all that marks anything."""
    return re.sub(
        r'`([^`]*)`|([\\*_|])',
        lambda found: code(found[1]) if found[1] else f'\\{found[2]}',
        text,
    )


# Options


def options() -> Lines:
    """All options, one section per area."""
    for area in modules(conf):
        if hasattr(area, 'OPTS'):
            group = getattr(area, 'GROUP', backend.GROUP)
            section = _section(group)
            yield from heading(f'[{section or "DEFAULT"}] {first_line(area)}')
            for option in area.OPTS:
                yield from _option(section, option)
                if not _is_used(option, area):
                    yield from (
                        '   This release accepts it and does not use it.',
                        '',
                    )


def _section(group: cfg.OptGroup | None) -> str | None:
    return 'backend' if group is backend.GROUP else group and group.name


def _option(section: str | None, option: cfg.Opt) -> Lines:
    name = f'{section}.{option.name}' if section else option.name
    yield from (f'.. conf:: {name}', '')
    facts = [type(option).__name__.removesuffix('Opt').lower()]
    for word in ('min', 'max'):
        if getattr(option.type, word, None) is not None:
            facts.append(f'{word} {getattr(option.type, word)}')
    if getattr(option.type, 'choices', None):
        facts.append(
            'one of ' + ', '.join(code(value) for value in option.type.choices)
        )
    facts.append(f'default {_default(option)}')
    yield from (
        f'   *{facts[0]}*, {", ".join(facts[1:])}',
        '',
        f'   {prose(option.help)}',
        '',
    )
    for old in option.deprecated_opts:
        yield from (
            '   Read as '
            + code(
                f'[{old.group or section or "DEFAULT"}] '
                f'{old.name or option.name}'
            )
            + ' as well.',
            '',
        )


def _is_used(option: cfg.Opt, area: ModuleType) -> bool:
    """Tell whether the service names the option outside of its area."""
    return any(
        re.search(rf'\b{option.dest}\b', text)
        for path, text in _sources()
        if path != area.__file__
    )


@functools.cache
def _sources() -> list[tuple[str, str]]:
    return [
        (str(path), path.read_text())
        for path in (CHECKOUT / 'manila_lite').rglob('*.py')
    ]


def _default(option: cfg.Opt) -> str:
    value = option.sample_default or option.default
    if value is None:
        return 'unset'
    if isinstance(value, dict):
        value = ','.join(f'{key}:{one}' for key, one in value.items())
    elif isinstance(value, list):
        value = ','.join(value)
    return code(value) if value != '' else 'empty'


# Who may do what

_PERSONAS = {
    personas.ADMIN: 'administrators',
    personas.ADMIN_OR_MEMBER: (
        'administrators, and members of the owning project'
    ),
    personas.ADMIN_OR_READER: (
        'administrators, and readers of the owning project'
    ),
}


def rules() -> Lines:
    """The policy rules, one section per resource."""
    for resource in modules(policies):
        if hasattr(resource, 'RULES'):
            yield from heading(first_line(resource))
            for rule in resource.RULES:
                yield from _rule(rule)


def _rule(rule: policy.RuleDefault) -> Lines:
    yield from (
        f'.. policy:: {rule.name}',
        '',
        f'   {prose(rule.description)}',
        '',
    )
    who = _PERSONAS.get(rule.check_str) or code(rule.check_str)
    yield from (f'   Default: {who}', '')
    for operation in getattr(rule, 'operations', ()):
        yield f'   | ``{operation["method"]} {operation["path"]}``'
    yield ''


# State tables


def diagrams() -> Lines:
    """Every state table: drawn, and as a list of moves."""
    for machine in state_tables():
        noun = machine.resource.replace('_', ' ')
        yield from heading(f'{machine.column} of a {noun}')
        yield from drawing(machine)
        births = [
            (code(event), 'new', code(status))
            for event, status in machine.initial.items()
        ]
        yield from table(
            ('Move', 'from', 'to'),
            births
            + [
                (
                    code(move.event),
                    state_diagram.sources(machine, move),
                    'gone'
                    if move.target is machines.GONE
                    else code(move.target),
                )
                for move in state_diagram.moves(machine)
            ],
            '20 55 25',
        )
        yield from _resets(machine)


def drawing(machine: machines.Machine) -> Lines:
    """One state table, drawn."""
    yield from ('.. raw:: html', '', f'   {state_diagram.svg(machine)}', '')


def drawing_of(resource: str) -> Lines:
    """The drawing of the table of this resource."""
    (machine,) = (one for one in state_tables() if one.resource == resource)
    yield from drawing(machine)


def _resets(machine: machines.Machine) -> Lines:
    yield f'At rest are {_codes(machine.at_rest)}.'
    if machine.resets:
        reset = machine[machine.reset_event(min(machine.resets))]
        kept = machine.statuses - reset.sources
        but = f', though not from {_codes(kept)}' if kept else ''
        yield (f'An administrator may set {_codes(machine.resets)}{but}.')
    yield ''


def recovery() -> Lines:
    """What is done about each status in flight when its holder is gone."""
    yield from table(
        ('Resource', 'Status', 'What is done', 'Where it ends'),
        (
            (
                machine.resource.replace('_', ' '),
                code(status),
                _deed(rescue),
                _ends(machine, status),
            )
            for machine in state_tables()
            for status, rescue in machine.in_flight.items()
        ),
        '16 20 38 26',
    )


def _deed(rescue: machines.Rescue) -> str:
    """What the rescue says of itself, the name at its end as code."""
    words, _, name = rescue.description.rpartition(' ')
    return f'{words} {code(name)}'


def _ends(machine: machines.Machine, status: str) -> str:
    if isinstance(machine.in_flight[status], machines.Resume):
        return 'as that work ends'
    return ' or '.join(
        'gone' if end is machines.GONE else code(end)
        for end in machine.rescue_targets(status)
    )


def _codes(statuses: Iterable[str]) -> str:
    return ', '.join(code(status) for status in sorted(statuses))


# Other declarations


def history() -> Lines:
    """What each version of the API has added."""
    yield from table(
        ('Version', 'Since then'),
        (
            (versions.text(minor), prose(what))
            for minor, what in reversed(versions.HISTORY)
        ),
        '12 88',
    )


def user_messages() -> Lines:
    """The codes of user messages and their words."""
    for title, codes in (
        ('Action', messages.Action),
        ('Detail', messages.Detail),
    ):
        yield from table(
            (title, 'Words'),
            ((code(found.value), prose(found.words)) for found in codes),
            '12 88',
        )


def plugins(group: str) -> Lines:
    """What is found by an entry point of the group."""
    found = sorted(metadata.entry_points(group=group))
    yield from table(
        ('Name', 'What it is'),
        ((code(point.name), prose(_about(point.load()))) for point in found),
        '30 70',
    )


def _about(plugin: type) -> str:
    module = importlib.import_module(plugin.__module__)
    return f'{first_line(plugin) or first_line(module)}.'


def differences() -> Lines:
    """What the tests know to differ from the published API, and why."""
    said = _said_about(DIFFERENCES)
    for name, found in runpy.run_path(str(DIFFERENCES)).items():
        if name in said and _is_reasons(found):
            yield from (prose(said[name]), '')
            yield from table(
                ('What', 'Why'),
                (
                    (code(_key(what)), prose(why))
                    for what, why in found.items()
                ),
                '60 40',
            )


def _said_about(path: pathlib.Path) -> dict[str, str]:
    """The strings that stand below the names of a module."""
    body = ast.parse(path.read_text()).body
    return {
        statement.targets[0].id: ' '.join(text.value.value.split())
        for statement, text in zip(body, body[1:], strict=False)
        if isinstance(statement, ast.Assign) and isinstance(text, ast.Expr)
    }


def _is_reasons(found: object) -> bool:
    return isinstance(found, dict) and all(
        isinstance(why, str) for why in found.values()
    )


def _key(what: object) -> str:
    return what if isinstance(what, str) else ' '.join(map(str, what))


# Roles: what they name must be there


def has_status(name: str) -> bool:
    return any(name in machine.statuses for machine in state_tables())


def has_path(name: str) -> bool:
    return (CHECKOUT / name).exists()


def has_name(name: str) -> bool:
    """Tell whether there is a `package.module:Class.attribute`."""
    module, _, path = name.partition(':')
    try:
        found = importlib.import_module(module)
        for attribute in path.split('.'):
            found = getattr(found, attribute)
    except (ImportError, AttributeError):
        return False
    return True


class Checked(SphinxRole):
    """A literal text; a warning where the check says no.

    Of the name of something in a module, the module is not shown.
    """

    def __init__(self, what: str, exists: Callable[[str], bool]):
        super().__init__()
        self.what, self.exists = what, exists

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if not self.exists(self.text):
            LOG.warning(
                'there is no %s %s',
                self.what,
                self.text,
                location=self.get_location(),
            )
        shown = self.text.rpartition(':')[2]
        return [nodes.literal(shown, shown)], []


class FromCode(SphinxDirective):
    """Shows lines that a function makes; it may have an argument."""

    optional_arguments = 1
    source: Callable[..., Lines]

    def run(self) -> list[nodes.Node]:
        lines = type(self).source(*self.arguments)
        return self.parse_text_to_nodes(
            '\n'.join(lines), allow_section_headings=True
        )


def setup(app: Sphinx) -> dict[str, bool]:
    for name, source in (
        ('options', options),
        ('policies', rules),
        ('state-tables', diagrams),
        ('state-drawing', drawing_of),
        ('recovery', recovery),
        ('api-versions', history),
        ('user-messages', user_messages),
        ('plugins', plugins),
        ('differences', differences),
    ):
        app.add_directive(
            name, type(name, (FromCode,), {'source': staticmethod(source)})
        )
    app.add_object_type('conf', 'conf', 'pair: %s; option')
    app.add_object_type('policy', 'policy', 'pair: %s; policy rule')
    for role, exists in (
        ('status', has_status),
        ('source', has_path),
        ('name', has_name),
    ):
        app.add_role(role, Checked(role, exists))
    return {'parallel_read_safe': True}
