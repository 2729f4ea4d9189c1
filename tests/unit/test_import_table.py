"""Check the imports of every module against the table of layers.

Imports inside functions count: they are loaded later, and still needed.
"""

import ast
import collections
import graphlib
import pathlib

import manila_lite

ROOT = pathlib.Path(manila_lite.__file__).parent

FIRST = (
    'states',
    'exception',
    'context',
    'conf',
    'host',
    'masking',
    'metrics',
    'plugins',
    'release',
)
SECOND = ('db',)
THIRD = ('work.table', 'policies', 'quota', 'messages', 'coordination', 'network')
FOURTH = (
    'work.notify',
    'work.waiting',
    'work.admission',
    'rpc',
    'work.job',
    'work.runner',
)
# A runner runs the handlers of contracts.
RUNS = (
    'work.notify',
    'work.operation_log',
    'work.lease',
    'work.blocked',
    'work.driver_calls',
    'work.job',
    'rpc.contract',
)
FIRST_FOUR = FIRST + SECOND + THIRD + FOURTH

# A part may import itself and the parts listed here for it. A module that
# belongs to no part may import nothing of ours.
TABLE = {
    **dict.fromkeys(FIRST, ()),
    # A context raises PolicyNotAuthorized.
    'context': ('exception',),
    **dict.fromkeys(SECOND, FIRST),
    **dict.fromkeys(THIRD, FIRST + SECOND),
    **dict.fromkeys(FOURTH, FIRST + SECOND + THIRD),
    'work.lease': (),
    'work.blocked': (),
    'work.statements': SECOND,
    'work.operation_log': ('exception',),
    'work.driver_calls': (*FIRST, *SECOND),
    'work.table': (
        *FIRST,
        *SECOND,
        'work.operation_log',
        'work.driver_calls',
        'work.statements',
    ),
    'work.job': (
        *FIRST,
        *SECOND,
        'work.operation_log',
        'work.table',
        'work.lease',
        'work.driver_calls',
    ),
    'work.execution': (*FIRST, *SECOND, *THIRD, *RUNS),
    'work.runner': (*FIRST, *SECOND, *THIRD, *RUNS, 'work.execution'),
    'work.cancel': (*FIRST, *SECOND, 'work.table', 'work.execution'),
    # Drivers are given options and a request context.
    'share.drivers': ('exception', 'conf', 'context', 'host', 'masking', 'plugins'),
    'scheduler.unserved_work': (
        *FIRST_FOUR,
        'scheduler',
        'work.cancel',
        'work.execution',
    ),
    'scheduler': FIRST_FOUR,
    'share.operations': FIRST_FOUR,
    'share.manager': (*FIRST_FOUR, 'share.drivers.base'),
    'data': (
        *FIRST_FOUR,
        'share.drivers.base',
        'share.drivers.contract.connections',
        'share.drivers.tree_removal',
        'share.drivers.trees',
    ),
    # Controllers of plain records use sessions; limits and message texts
    # are plain records with modules of their own. The router knows which
    # resource a request changes.
    'api': (
        'share.operations',
        'db.queries',
        'db.rows',
        'db.session',
        'db.write_limit',
        'policies',
        'states',
        'exception',
        'context',
        'host',
        'masking',
        'metrics',
        'quota',
        'messages',
    ),
    'cmd': ('',),
}


def _is_within(module, part):
    return part == '' or module == part or module.startswith(f'{part}.')


def _part_of(module):
    """Return the part of the table that a module belongs to."""
    return next((part for part in TABLE if _is_within(module, part)), None)


def _modules():
    """Yield our modules, without the package name, and their files."""
    for path in sorted(ROOT.rglob('*.py')):
        parts = path.relative_to(ROOT).with_suffix('').parts
        yield '.'.join(part for part in parts if part != '__init__'), path


MODULES = dict(_modules())


def _imports(source):
    """Yield line and name of every import of our modules in the source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, 'relative imports are not allowed'
            names = [f'{node.module}.{alias.name}' for alias in node.names]
        else:
            continue
        for name in names:
            package, _, ours = name.partition('.')
            if package == 'manila_lite':
                # A name that is not a module is inside the module before it.
                yield (
                    node.lineno,
                    (ours if ours in MODULES else ours.rpartition('.')[0]),
                )


def _forbidden_imports(module, path):
    part = _part_of(module)
    allowed = () if part is None else (part, *TABLE[part])
    return [
        f'{module}:{line} imports {name}'
        for line, name in _imports(path.read_text(encoding='utf-8'))
        if not any(_is_within(name, one) for one in allowed)
    ]


def test_a_module_imports_only_what_its_row_allows():
    assert [
        found
        for module, path in MODULES.items()
        for found in _forbidden_imports(module, path)
    ] == []


def _circle(imports):
    """Return modules that import each other in a circle, or None."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def _imports_by_module():
    return {
        module: {
            name
            for _, name in _imports(path.read_text(encoding='utf-8'))
            if name != module
        }
        for module, path in MODULES.items()
    }


def test_no_modules_import_each_other_in_a_circle():
    assert _circle(_imports_by_module()) is None


def test_no_parts_of_the_manager_import_each_other_in_a_circle():
    parts = collections.defaultdict(set)
    for module, names in _imports_by_module().items():
        parts[_part_of_manager(module)] |= {_part_of_manager(name) for name in names}
    del parts[None]
    assert (
        _circle({part: names - {part, None} for part, names in parts.items()}) is None
    )


def _part_of_manager(module):
    """Return the folder or module below the manager; None elsewhere."""
    _, _, inside = module.partition('share.manager.')
    return inside.partition('.')[0] or None


def test_a_circle_is_found():
    assert set(_circle({'a': {'b', 'd'}, 'b': {'c'}, 'c': {'a'}})) == set('abc')


def test_every_part_of_the_table_exists():
    assert {part for part in TABLE if part not in MODULES} == set()


def test_imports_are_found_in_any_place():
    assert list(
        _imports("""
import os, manila_lite.db.session
from manila_lite.states.share_instance import InstanceStatus
def later():
    from manila_lite import conf as options
""")
    ) == [(2, 'db.session'), (3, 'states.share_instance'), (5, 'conf')]
