"""Every option that is registered is read somewhere."""

import ast
from collections.abc import Iterator
import pathlib
import re
import typing

import pytest

import manila_lite
from manila_lite import conf
from manila_lite.quota import limits

ROOT = pathlib.Path(manila_lite.__file__).parent

NEVER_READ = {'my_ip': 'other options refer to it as $my_ip'}
"""Options that no code reads, and why they exist."""

SECTIONS = frozenset({'conf', 'config', 'configuration', 'options', 'values'})
"""Last part of the names of objects that have options as attributes."""

GETTERS = frozenset({'safe_get', 'get', 'getattr', 'Option'})
"""Functions that read the option with the name they are passed."""


class Read(typing.NamedTuple):
    """A place where an option is read; `pattern` may match several names."""

    section: str
    pattern: str


def last_name(node: ast.AST) -> str:
    """Return `c` of `a.b.c`, of `a.b.c()` and of `a.b.c[...]`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    return ''


def pattern_of(node: ast.AST) -> str | None:
    """Return a pattern of the values of a string or an f-string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        return ''.join(
            pattern_of(part) or '.+' if isinstance(part, ast.Constant) else '.+'
            for part in node.values
        )
    return None


def reads_in(text: str) -> Iterator[Read]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield Read(last_name(node.value), re.escape(node.attr))
        elif isinstance(node, ast.Subscript):
            pattern = pattern_of(node.slice)
            if pattern is not None and isinstance(node.ctx, ast.Load):
                yield Read(last_name(node.value), pattern)
        elif isinstance(node, ast.Call) and last_name(node.func) in GETTERS:
            for argument in node.args:
                pattern = pattern_of(argument)
                if pattern is not None:
                    group, _, name = pattern.rpartition(r'\.')
                    yield Read(group or 'options', name)


def reads_in_package() -> Iterator[Read]:
    """Yield the reads of all modules but those that register options."""
    for path in ROOT.rglob('*.py'):
        if path.parent.name != 'conf' or path.name == '__init__.py':
            yield from reads_in(path.read_text())


def registered() -> set[tuple[str, str]]:
    """Return group and name of every option."""
    return {
        (getattr(group, 'name', 'DEFAULT'), opt.dest)
        for group, opts in conf.list_opts()
        for opt in opts
    }


def is_read(group: str, name: str, reads: set[Read]) -> bool:
    sections = SECTIONS | {group}
    return any(
        read.section in sections and re.fullmatch(read.pattern, name) for read in reads
    )


def test_every_option_is_read_or_has_a_reason():
    reads = set(reads_in_package())
    unread = {
        name
        for group, name in registered()
        if group != 'quota' and not is_read(group, name, reads)
    }
    assert unread == set(NEVER_READ)


def test_every_default_quota_is_read(tmp_path):
    names = {name for group, name in registered() if group == 'quota'}
    file = tmp_path / 'manila.conf'
    file.write_text('\n'.join(['[quota]', *(f'{name} = 123456' for name in names)]))
    found = limits.from_options(conf.new(files=[str(file)]).quota)
    assert found == dict.fromkeys(names, 123456)


def test_own_address_can_be_used_in_other_options(tmp_path):
    file = tmp_path / 'manila.conf'
    file.write_text('[DEFAULT]\nmy_ip = 192.0.2.7\nosapi_share_listen = $my_ip\n')
    assert conf.new(files=[str(file)]).osapi_share_listen == '192.0.2.7'


@pytest.mark.parametrize(
    'code, found',
    [
        ('conf.colour', True),
        ('self.conf.colour', True),
        ('conf[name].colour', True),
        ('conf.paint.colour', True),
        ("self.configuration.safe_get('colour')", True),
        ("self.options[f'col{rest}']", True),
        ("conf['colour']", True),
        ('conf.colour = 1', False),
        ('shape.colour', False),
        ("conf.set_override('colour', 1)", False),
        ("f'set colour{rest}'", False),
        ("LOG.info('colour')", False),
    ],
)
def test_reads_are_recognised(code, found):
    assert is_read('paint', 'colour', set(reads_in(code))) is found
