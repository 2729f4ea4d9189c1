"""Private names of libraries are used only below a cap on the version.

A library may change what it calls private in any release. Each use is
listed with the reason why the public interface does not do, and
requirements.txt caps the library at the major version that was tested.
"""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

import manila_lite

ROOT = pathlib.Path(manila_lite.__file__).parent
REQUIREMENTS = ROOT.parent / 'requirements.txt'

# Name used: where it is defined, the distribution, and the reason.
USED = {
    'oslo_config.cfg.ConfigOpts._opts': (
        'oslo.config',
        'no public method says which registered options are secret',
    ),
    'oslo_config.cfg.ConfigOpts._groups': (
        'oslo.config',
        'no public method says which registered options are secret',
    ),
    'oslo_messaging._drivers.base': (
        'oslo.messaging',
        'the base classes of drivers under the public entry point',
    ),
    'oslo_messaging._drivers.common': (
        'oslo.messaging',
        'how errors travel, so that memory:// and rabbit:// raise the same',
    ),
    'oslo_messaging._drivers.base.BaseDriver._default_exchange': (
        'oslo.messaging',
        'what the base class keeps for its drivers',
    ),
    'oslo_messaging._drivers.base.BaseDriver._allowed_remote_exmods': (
        'oslo.messaging',
        'what the base class keeps for its drivers',
    ),
    'oslo_messaging.transport.Transport._send_notification': (
        'oslo.messaging',
        'the notifier only logs that it could not send',
    ),
    'oslo_messaging._metrics.client': (
        'oslo.messaging',
        'its options are registered on the global configuration only',
    ),
    'oslo_messaging._tracing.client': (
        'oslo.messaging',
        'its options are registered on the global configuration only',
    ),
    'oslo_messaging.transport._transport_opts': (
        'oslo.messaging',
        'oslo_messaging.opts has them too but imports every driver',
    ),
    'oslo_messaging.server.MessageHandlingServer._executor_cls': (
        'oslo.messaging',
        'its executor wakes every idle thread once a second',
    ),
    'oslo_policy._checks': (
        'oslo.policy',
        'the leaves of a check tree have no public names',
    ),
    'sqlalchemy.engine.base.Engine._has_events': (
        'SQLAlchemy',
        'stays set when the last listener is removed',
    ),
    'sqlalchemy.pool.impl.QueuePool._dec_overflow': (
        'SQLAlchemy',
        'no public method closes a connection that is idle in the pool',
    ),
    'sqlalchemy.pool.base.Pool._pre_ping': (
        'SQLAlchemy',
        'oslo.db sets it for every engine that it creates',
    ),
    'sqlalchemy.pool.base.Pool._reset_on_return': (
        'SQLAlchemy',
        'oslo.db has no argument for it',
    ),
}


def _private_uses(path):
    """Yield the private library names that a module imports or reads."""
    tree = ast.parse(path.read_text(encoding='utf-8'))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f'{node.module}.{alias.name}'
                if name.startswith('manila_lite'):
                    continue
                if any(
                    part.startswith('_') and part != '__future__'
                    for part in name.split('.')
                ):
                    yield name
        elif isinstance(node, ast.Attribute) and re.match(r'_[a-z]', node.attr):
            yield f'{ast.unparse(node.value)}.{node.attr}'


def _own_names(path):
    """Yield the names that a module of ours defines."""
    tree = ast.parse(path.read_text(encoding='utf-8'))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) in ('self', 'cls', 'stub')
        ):
            yield node.attr


# Documented as public despite the underscore, by namedtuple and SQLAlchemy.
PUBLIC = {'_asdict', '_fields', '_make', '_mapping', '_replace'}
# Set by enum and by oslo.config's example; the names of Python itself.
PYTHON = {'_exit', '_value_', '_member_map_'}


def test_every_private_name_in_use_is_listed():
    allowed = {name.rpartition('.')[2] for name in USED} | PUBLIC | PYTHON
    for path in ROOT.rglob('*.py'):
        allowed.update(_own_names(path))
    found = {
        use
        for path in ROOT.rglob('*.py')
        for use in _private_uses(path)
        if use not in USED and use.rpartition('.')[2] not in allowed
    }
    assert found == set()


FIND = r"""
import importlib, inspect, re, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError:
        module, attribute = re.match(
            r'([a-z_.]+)\.(?:[A-Z]\w+\.)?(\w+)$', name
        ).groups()
        source = inspect.getsource(importlib.import_module(module))
        if not re.search(rf'\b{attribute} = |def {attribute}\(', source):
            print(name)
"""


def test_private_names_are_still_there():
    # In a process of its own: commands hide eventlet from all later imports.
    missing = subprocess.check_output(
        [sys.executable, '-c', FIND, *USED], text=True, timeout=60
    )
    assert missing == ''


@pytest.mark.parametrize('library', sorted({row[0] for row in USED.values()}))
def test_library_with_private_names_is_capped(library):
    (line,) = (
        line
        for line in REQUIREMENTS.read_text(encoding='utf-8').splitlines()
        if line.startswith(library + '>=')
    )
    tested, cap = re.fullmatch(
        rf'{re.escape(library)}>=(\d+)[\d.]*,<(\d+)', line
    ).groups()
    assert int(cap) == int(tested) + 1
