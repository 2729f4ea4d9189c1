"""All changes of files are made where their claim is checked.

The code of this package is searched for the calls that change files. Those
of the data service stand in the steps of the gate; outside of it and of the
drivers, only what is listed here changes files, and none of it is a share's.
"""

import ast
import fcntl
import functools
import os
import pathlib

import pytest

import manila_lite
from manila_lite import exception
from manila_lite.data.gate import Copying, Gate
from manila_lite.share.drivers import trees

ROOT = pathlib.Path(manila_lite.__file__).parent
GATE = 'data/gate.py'
DRIVERS = 'share/drivers/'

OS_CALLS = frozenset(
    {
        *('chmod', 'chown', 'copy_file_range', 'fchmod', 'fchown', 'fdopen'),
        *('ftruncate', 'lchmod', 'lchown', 'link', 'makedirs', 'mkdir'),
        *('mkfifo', 'mknod', 'open', 'posix_fallocate', 'pwrite', 'pwritev'),
        *('remove', 'removedirs', 'removexattr', 'rename', 'renames'),
        *('replace', 'rmdir', 'sendfile', 'setxattr', 'symlink', 'truncate'),
        *('unlink', 'utime', 'write', 'writev'),
    }
)
PATH_CALLS = frozenset(
    {
        *('chmod', 'hardlink_to', 'lchmod', 'mkdir', 'rename', 'rmdir'),
        *('symlink_to', 'touch', 'unlink', 'write_bytes', 'write_text'),
    }
)
OUR_CALLS = frozenset(
    {
        *('accessible_directory', 'apply', 'copy_attributes', 'copy_content'),
        *('copy_special', 'copy_tree', 'empty_directory', 'fill_tree', 'move'),
        *('move_content', 'remove_entry', 'remove_tree'),
    }
)
OUR_MODULES = ('trees', 'tree_removal')

NOT_OF_SHARES = {
    'api/auth/users.py': 'the files of users and of revoked tokens',
    'api/auth/tokens.py': 'the key of tokens, the folder of revoked ones',
    'data/mounts.py': 'where shares are mounted; what is mounted is not touched',
    'cmd/driver_thread.py': 'a pipe',
    'cmd/share.py': 'a locked file per process',
    'cmd/manage.py': 'the null device',
    'cmd/running.py': 'a terminal',
    'cmd/serve.py': 'the folder of the state',
    'cmd/start.py': 'the folder of the state',
    'cmd/supervisor.py': 'the name of the process',
    'cmd/users.py': 'the folder of the state',
    'coordination.py': 'files of locks',
}


def changes_in(tree):
    """Yield the calls that change files, or open them to that end."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _changes(node):
            yield node


def _changes(call):
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == 'open' and _writes(call)
    if not isinstance(function, ast.Attribute):
        return False
    owner, name = function.value, function.attr
    if isinstance(owner, ast.Name):
        if owner.id == 'os':
            return name in OS_CALLS
        if owner.id == 'shutil':
            return name not in ('which', 'disk_usage', 'get_terminal_size')
        if owner.id in OUR_MODULES:
            return name in OUR_CALLS
    if name == 'open':
        return _writes(call)
    if name == 'replace':
        return len(call.args) == 1 and not call.keywords
    return name in PATH_CALLS


def _writes(call):
    """Whether `open` is given a mode that is not just to read."""
    modes = [
        one.value
        for one in (*call.args, *(one.value for one in call.keywords))
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    ]
    return any(set(mode) & set('wax+') for mode in modes if len(mode) < 4)


@functools.cache
def parsed(path):
    return ast.parse((ROOT / path).read_text())


def modules():
    return [path.relative_to(ROOT).as_posix() for path in ROOT.rglob('*.py')]


def test_only_the_gate_the_drivers_and_what_is_listed_change_files():
    found = {
        path
        for path in modules()
        if not path.startswith(DRIVERS) and any(changes_in(parsed(path)))
    }
    assert found == {GATE, *NOT_OF_SHARES}


def test_every_change_in_the_gate_is_made_in_a_step():
    tree = parsed(GATE)
    steps = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.With)
        and any(
            ast.unparse(item.context_expr).startswith(('self._step', 'self._own'))
            for item in block.items
        )
        for node in ast.walk(block)
    }
    private = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith('_')
    }
    for name, function in private.items():
        calls = [
            id(node)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == name
        ]
        if set(calls) <= steps:  # called in steps only
            steps |= {id(node) for node in ast.walk(function)}
    changes = list(changes_in(tree))
    assert len(changes) > 10
    assert [ast.unparse(node) for node in changes if id(node) not in steps] == []


def test_no_copy_flushes_all_file_systems():
    assert [
        path
        for path in modules()
        if any(
            ast.unparse(node) == 'os.sync'
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Attribute)
        )
    ] == []


class Lost(Exception):
    """The claim is lost."""


class Attempt:
    """An attempt on a directory, which notes the names of its steps."""

    def __init__(self, folder, token=1, on_step=None):
        self.steps = []
        self.is_lost = False
        self.folder = os.open(folder, os.O_RDONLY)
        self.gate = Gate(
            Copying(
                lambda count: None,
                lambda: None,
                self.require_claim,
                token,
                on_step=on_step or self.steps.append,
            ),
            self.folder,
        )

    def require_claim(self):
        if self.is_lost:
            raise Lost


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'file').write_text('kept')
    (folder / 'below').mkdir(mode=0o700)
    return folder


@pytest.fixture
def attempt(folder):
    attempt = Attempt(folder)
    yield attempt
    os.close(attempt.folder)


CHANGES = {
    'make_folder': lambda gate, top, at: gate.make_folder(top / 'a' / 'b'),
    'remove_tree': lambda gate, top, at: gate.remove_tree(top / 'below'),
    'make_directory': lambda gate, top, at: gate.make_directory('new', at),
    'open_directory': lambda gate, top, at: gate.opened_directory(
        'below', at
    ).__enter__(),
    'remove': lambda gate, top, at: gate.remove('file', at),
    'link': lambda gate, top, at: gate.link('file', at, 'new', at),
    'apply': lambda gate, top, at: gate.apply(
        trees.Attributes.of(at)._replace(mode=0o711), at
    ),
}


def state_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.lstat().st_mode
        for path in (folder, *folder.rglob('*'))
    }


@pytest.mark.parametrize('name', CHANGES)
def test_without_the_claim_nothing_is_changed(attempt, folder, name):
    before = state_of(folder)
    attempt.is_lost = True
    with pytest.raises(Lost):
        CHANGES[name](attempt.gate, folder, attempt.folder)
    assert state_of(folder) == before
    assert attempt.steps == [f'at {name}']


def test_an_attempt_waits_for_an_earlier_one_that_is_in_a_step(folder):
    seen = []

    def take_over(step):
        seen.append(step)
        if step == 'at remove':  # its claim is still to be checked
            later.gate.take_over()
        else:
            with pytest.raises(exception.EarlierCopyRuns):
                later.gate.take_over()

    earlier = Attempt(folder, on_step=take_over)
    later = Attempt(folder, token=2)
    earlier.gate.remove('file', earlier.folder)
    assert seen == ['at remove', 'before remove', 'after remove']
    later.gate.take_over()
    for one in (earlier, later):
        os.close(one.folder)


def test_locks_are_no_condition(attempt, folder, monkeypatch):
    def unsupported(file, operation):
        raise OSError(95, 'not supported')

    monkeypatch.setattr(fcntl, 'flock', unsupported)
    attempt.gate.take_over()
    attempt.gate.remove('file', attempt.folder)
    assert not (folder / 'file').exists()


def test_only_what_carries_the_own_token_is_discarded(attempt, folder):
    for name in ('b.1', 'b.2'):
        (folder / name).mkdir()
    attempt.is_lost = True
    attempt.gate.discard(folder / 'b.1')
    with pytest.raises(ValueError, match=r'b\.2'):
        attempt.gate.discard(folder / 'b.2')
    assert (folder / 'b.2').exists()
