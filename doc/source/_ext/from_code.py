"""Sphinx directives and roles that read the code.

Directives show what the code declares: options, policy rules, state
tables, versions. Roles refer to a name in the code and warn if it does not
exist; the build treats warnings as errors.
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
from sphinx.util.docutils import SphinxDirective, SphinxRole
import state_diagram

from manila_lite import conf, messages, policies, states
from manila_lite.api import versions
from manila_lite.cmd.build import database_metrics
from manila_lite.conf import backend
from manila_lite.policies import base as personas
from manila_lite.rpc import contracts, share as share_contracts
from manila_lite.scheduler import event_kinds
from manila_lite.share.drivers.btrfs import privileges
from manila_lite.states import machine as machines

LOG = logging.getLogger(__name__)

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
DIFFERENCES = CHECKOUT / 'tests/functional/api/differences.py'

Lines = Iterator[str]


# Declarations in the code


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yield the modules of a package, sorted by name."""
    for found in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f'{package.__name__}.{found.name}')


def state_tables() -> list[machines.Machine]:
    """Return all state tables."""
    found = {
        value
        for module in modules(states)
        for value in vars(module).values()
        if isinstance(value, machines.Machine)
    }
    return sorted(found, key=lambda table: (table.resource, table.column))


def first_line(thing: object) -> str:
    """Return the first line of a docstring without its full stop."""
    return (thing.__doc__ or '').split('\n')[0].rstrip('.')


# Tables of reStructuredText


def table(
    head: Iterable[str], rows: Iterable[Iterable[str]], widths: str = 'auto'
) -> Lines:
    yield from ('.. list-table::', '   :header-rows: 1', f'   :widths: {widths}', '')
    for first, *others in (head, *rows):
        yield f'   * - {first}'
        yield from (f'     - {cell}' for cell in others)
    yield ''


def heading(text: str) -> Lines:
    yield from ('', text, '-' * len(text), '')


def code(text: object) -> str:
    return f'``{text}``'


def prose(text: str) -> str:
    """Convert text from the code, whose only markup are backticks."""
    return re.sub(
        r'`([^`]*)`|([\\*_|])',
        lambda found: code(found[1]) if found[1] else f'\\{found[2]}',
        text,
    )


# Options


def options() -> Lines:
    """Yield all options, one section per area."""
    for area in modules(conf):
        if hasattr(area, 'OPTS'):
            group = getattr(area, 'GROUP', backend.GROUP)
            section = _section(group)
            yield from heading(f'[{section or "DEFAULT"}] {first_line(area)}')
            for option in area.OPTS:
                yield from _option(section, option)
                if not _is_used(option, area):
                    yield from (
                        '   This release accepts the option but ignores it.',
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
            + code(f'[{old.group or section or "DEFAULT"}] {old.name or option.name}')
            + ' as well.',
            '',
        )


def _is_used(option: cfg.Opt, area: ModuleType) -> bool:
    """Tell whether the option is read outside of its area."""
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


# Policies

_PERSONAS = {
    personas.ADMIN: 'administrators',
    personas.ADMIN_OR_MEMBER: ('administrators, and members of the owning project'),
    personas.ADMIN_OR_READER: ('administrators, and readers of the owning project'),
}


def rules() -> Lines:
    """Yield the policy rules, one section per resource."""
    for resource in modules(policies):
        if hasattr(resource, 'RULES'):
            yield from heading(first_line(resource))
            for rule in resource.RULES:
                yield from _rule(rule)


def _rule(rule: policy.RuleDefault) -> Lines:
    yield from (f'.. policy:: {rule.name}', '', f'   {prose(rule.description)}', '')
    default = _PERSONAS.get(rule.check_str) or code(rule.check_str)
    yield from (f'   Default: {default}', '')
    for operation in getattr(rule, 'operations', ()):
        yield f'   | ``{operation["method"]} {operation["path"]}``'
    yield ''


# State tables


def diagrams() -> Lines:
    """Yield every state table as a drawing and a list of moves."""
    for machine in state_tables():
        noun = machine.resource.replace('_', ' ')
        yield from heading(f'{machine.column} of a {noun}')
        yield from drawing(machine)
        creations = [
            (code(event), 'new', code(status))
            for event, status in machine.initial.items()
        ]
        yield from table(
            ('Move', 'from', 'to'),
            creations
            + [
                (
                    code(move.event),
                    state_diagram.sources(machine, move),
                    'gone' if move.target is machines.GONE else code(move.target),
                )
                for move in state_diagram.moves(machine)
            ],
            '20 55 25',
        )
        yield from _resets(machine)


def drawing(machine: machines.Machine) -> Lines:
    """Yield the drawing of a state table."""
    yield from ('.. raw:: html', '', f'   {state_diagram.svg(machine)}', '')


def drawing_of(resource: str) -> Lines:
    """Yield the drawing of the state table of a resource."""
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
    """Yield the rescue of each status in flight."""
    yield from table(
        ('Resource', 'Status', 'Rescue', 'Result'),
        (
            (
                machine.resource.replace('_', ' '),
                code(status),
                _rescue_description(rescue) + _repeated(machine, status),
                _ends(machine, status),
            )
            for machine in state_tables()
            for status, rescue in machine.in_flight.items()
        ),
        '16 20 38 26',
    )


def _rescue_description(rescue: machines.Rescue) -> str:
    """Return the description of a rescue, with the name at its end as code."""
    words, _, name = rescue.description.rpartition(' ')
    return f'{words} {code(name)}'


def _repeated(machine: machines.Machine, status: str) -> str:
    """Return what is done about work of this status that was abandoned.

    Nothing is said if the rescue runs the same work, or other work, too.
    """
    if isinstance(machine.in_flight[status], (machines.Repeat, machines.Resume)):
        return ''
    kinds = [code(kind) for kind in repeatable_work(machine, status)]
    return f'; abandoned work is run again: {", ".join(kinds)}' * bool(kinds)


def repeatable_work(machine: machines.Machine, status: str) -> list[str]:
    """Return the kinds of work that may simply run again in this status."""
    return [
        work.kind
        for work in contracts.WORK.values()
        if work.topic == share_contracts.TOPIC
        and work.repeatable
        and work.failure
        and work.failure.machine is machine
        and machine[work.failure.event].can_leave(status)
    ]


def _ends(machine: machines.Machine, status: str) -> str:
    if isinstance(machine.in_flight[status], machines.Resume):
        return 'the result of that work'
    return ' or '.join(
        'gone' if end is machines.GONE else code(end)
        for end in machine.rescue_targets(status)
    )


def _codes(statuses: Iterable[str]) -> str:
    return ', '.join(code(status) for status in sorted(statuses))


# Other declarations


def history() -> Lines:
    """Yield the additions of each API version."""
    yield from table(
        ('Version', 'Changes'),
        (
            (versions.text(minor), prose(what))
            for minor, what in reversed(versions.HISTORY)
        ),
        '12 88',
    )


def user_messages() -> Lines:
    """Yield the codes of user messages and their texts."""
    for title, codes in (('Action', messages.Action), ('Detail', messages.Detail)):
        yield from table(
            (title, 'Text'),
            ((code(found.value), prose(found.words)) for found in codes),
            '12 88',
        )


def metrics() -> Lines:
    """Yield the metrics of our own."""
    yield from table(
        ('Metric', 'Kind', 'Labels', 'Meaning'),
        (
            (
                code(metric.name),
                metric.kind,
                ', '.join(map(code, metric.labels)) or 'none',
                prose(metric.help),
            )
            for metric in database_metrics.PROCESS_METRICS
        ),
        '36 10 18 36',
    )


def events() -> Lines:
    """Yield the kinds of events."""
    yield from table(
        ('Resource', 'What it is', 'Additional field'),
        (
            (
                code(name),
                prose(kind.meaning),
                code(kind.parent) if kind.parent else 'none',
            )
            for name, kind in event_kinds.KINDS.items()
        ),
        '30 45 25',
    )


def plugins(group: str) -> Lines:
    """Yield the plug-ins of an entry point group."""
    found = sorted(metadata.entry_points(group=group))
    yield from table(
        ('Name', 'Description'),
        ((code(point.name), prose(_about(point.load()))) for point in found),
        '30 70',
    )


def _about(plugin: type) -> str:
    module = importlib.import_module(plugin.__module__)
    return f'{first_line(plugin) or first_line(module)}.'


def differences() -> Lines:
    """Yield the known differences from the published API, with reasons."""
    descriptions = _descriptions(DIFFERENCES)
    for name, found in runpy.run_path(str(DIFFERENCES)).items():
        if name in descriptions and _is_reasons(found):
            yield from (prose(descriptions[name]), '')
            yield from table(
                ('Difference', 'Reason'),
                ((code(_key(what)), prose(why)) for what, why in found.items()),
                '60 40',
            )


def _descriptions(path: pathlib.Path) -> dict[str, str]:
    """Return the strings below the assignments of a module, by name."""
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


# Roles, which check that their target exists


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
    """A literal text, with a warning if the check fails.

    Only the part after the last colon is shown, without the module.
    """

    def __init__(self, what: str, exists: Callable[[str], bool]):
        super().__init__()
        self.what, self.exists = what, exists

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if not self.exists(self.text):
            LOG.warning(
                'there is no %s %s', self.what, self.text, location=self.get_location()
            )
        shown = self.text.rpartition(':')[2]
        return [nodes.literal(shown, shown)], []


class FromCode(SphinxDirective):
    """A directive whose content a function generates, from its argument."""

    optional_arguments = 1
    source: Callable[..., Lines]

    def run(self) -> list[nodes.Node]:
        lines = type(self).source(*self.arguments)
        return self.parse_text_to_nodes('\n'.join(lines), allow_section_headings=True)


def btrfs_privileges() -> Lines:
    """Yield the capabilities that the driver `btrfs` needs."""
    yield from table(
        ('Capability', 'Needed for', 'What for'),
        (
            (code(each.name), kind, prose(each.purpose))
            for kind, needed in (
                ('all back ends', privileges.CAPABILITIES),
                ('CIFS shares', privileges.CIFS_CAPABILITIES),
                ('share servers', privileges.SERVER_CAPABILITIES),
            )
            for each in needed
        ),
        '28 18 54',
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
        ('metrics', metrics),
        ('events', events),
        ('plugins', plugins),
        ('differences', differences),
        ('btrfs-privileges', btrfs_privileges),
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
