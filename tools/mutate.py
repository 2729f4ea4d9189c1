#!/usr/bin/env python3
"""Plant faults of one line, and see whether the tests catch them.

Each mutation drops or turns a guard, a statement, a comparison, a sign or a
status somewhere in manila_lite. Tests run on a copy of the tree, first the
files that are nearest to the changed module, then those of a tier:

    tools/mutate --seed 7 --count 20                 the nearest tests only
    tools/mutate --seed 7 --count 20 --tier test     then those of `make test`
    tools/mutate --seed 7 --count 20 --tier exhaust  then all enumerations
    tools/mutate --seed 7 --count 20 --list          only print the mutations
    tools/mutate --at db/transitions.py --count 5    only in this module
    tools/mutate --seed 7 --count 200 --map FILE     the tests that run the line

Trying a whole tier takes minutes for each mutation. A map says which tests of
`make test` run a line in their own process, and only those can fail; what runs
in processes that tests start is left to the tier. The file is made by the first
run that names it, which takes twice as long as `make test` and needs pytest-cov.

A failure counts if the same tests pass without the mutation. The seed decides
which mutations are planted, so a survivor can be planted again. A survivor is a
place to look: a guard without a test, a guard that is useless, or a change
without any effect. With `--least 0.7` fewer mutations caught than that are a
failure. Nothing in the checkout is changed.
"""

import argparse
import ast
import collections
from collections.abc import Iterator
import dataclasses
import functools
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = 'manila_lite'
# Options, rules and migrations are data that tests compare as a whole.
LEFT_OUT = ('conf/', 'policies/', 'db/migrations/', 'api/ui/')
NEAREST = 6  # test files
FIRST = 60  # tests of a map, before the others
TIERS = {
    'nearest': (),
    'test': ('--cases', '8', 'tests'),
    'exhaust': ('--exhaust', '--cases', '8', 'tests'),
}

COMPARISONS = {
    ast.Lt: '<=',
    ast.LtE: '<',
    ast.Gt: '>=',
    ast.GtE: '>',
    ast.Eq: '!=',
    ast.NotEq: '==',
    ast.In: 'not in',
    ast.NotIn: 'in',
    ast.Is: 'is not',
    ast.IsNot: 'is',
}


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One change: what stands at a place of a file, and what replaces it."""

    kind: str
    path: str  # below the package
    line: int
    start: int  # offsets in the file, in bytes
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (' '.join(text.split()) for text in (self.old, self.new))
        return f'{self.path}:{self.line}: {self.kind}: {old} -> {new}'

    def apply(self, tree: pathlib.Path) -> None:
        file = tree / PACKAGE / self.path
        source = file.read_bytes()
        file.write_bytes(source[: self.start] + self.new.encode() + source[self.end :])


class Source:
    """A module, and the mutations that it offers."""

    def __init__(self, path: pathlib.Path):
        self.path = str(path.relative_to(ROOT / PACKAGE))
        self.bytes = path.read_bytes()
        self.tree = ast.parse(self.bytes)
        self.lines = [0]
        for line in self.bytes.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def mutations(self) -> Iterator[Mutation]:
        for node in ast.walk(self.tree):
            for kind, replaced, new in self._changes(node):
                start, end = self._start(replaced), self._end(replaced)
                yield Mutation(
                    kind,
                    self.path,
                    replaced.lineno,
                    start,
                    end,
                    self.bytes[start:end].decode(),
                    new,
                )

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
        match node:
            case ast.Call(func=ast.Attribute(attr='where'), args=[_, *_]):
                yield from self._fewer_conditions(node)
            case ast.BoolOp(values=values):
                word = ' and ' if isinstance(node.op, ast.And) else ' or '
                for number in range(len(values)):
                    kept = values[:number] + values[number + 1 :]
                    text = word.join(f'({self._text(one)})' for one in kept)
                    yield 'operand', node, f'({text})'
            case ast.If(test=test, body=[ast.Raise() | ast.Return()]):
                yield 'guard', test, 'False'
            case ast.Compare(ops=[operator], comparators=[right]):
                sign = COMPARISONS[type(operator)]
                left, right = self._text(node.left), self._text(right)
                yield 'comparison', node, f'(({left}) {sign} ({right}))'
            case ast.Expr(value=ast.Call() as call):
                if not re.match(r'LOG\.|super\(\)', self._text(call)):
                    yield 'statement', node, 'pass'
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name() as name):
                yield 'sign', node, self._text(name)
            case ast.Attribute(value=ast.Name() as enum, attr=attr):
                if self.path.startswith('states/') and attr.isupper():
                    others = self._members[enum.id] - {attr}
                    for other in sorted(others):
                        yield 'status', node, f'{enum.id}.{other}'

    def _fewer_conditions(self, call: ast.Call) -> Iterator[tuple[str, ast.AST, str]]:
        called = self._text(call.func)
        for number in range(len(call.args)):
            kept = call.args[:number] + call.args[number + 1 :]
            text = ', '.join(map(self._text, kept))
            yield 'condition', call, f'{called}({text})'

    @functools.cached_property
    def _members(self) -> dict[str, set[str]]:
        """The members that the module uses of each enumeration."""
        found = collections.defaultdict(set)
        for node in ast.walk(self.tree):
            match node:
                case ast.Attribute(value=ast.Name(id=enum), attr=attr):
                    if attr.isupper():
                        found[enum].add(attr)
        return found

    def _text(self, node: ast.AST) -> str:
        return self.bytes[self._start(node) : self._end(node)].decode()

    def _start(self, node: ast.AST) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.AST) -> int:
        return self.lines[node.end_lineno - 1] + node.end_col_offset


def choose(seed: int, count: int, at: str) -> list[Mutation]:
    """Return mutations: every kind is as likely, whatever its number."""
    by_kind: dict[str, list[Mutation]] = collections.defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob('*.py')):
        name = str(path.relative_to(ROOT / PACKAGE))
        if name.startswith(at) and not name.startswith(LEFT_OUT):
            for mutation in Source(path).mutations():
                by_kind[mutation.kind].append(mutation)
    rng = random.Random(seed)
    chosen: list[Mutation] = []
    while len(chosen) < count and by_kind:
        kind = rng.choice(sorted(by_kind))
        mutations = by_kind[kind]
        chosen.append(mutations.pop(rng.randrange(len(mutations))))
        if not mutations:
            del by_kind[kind]
    return chosen


def nearest(path: str) -> list[str]:
    """Return the test files that are most likely to notice a change."""
    module = f'{PACKAGE}/{path}'.removesuffix('.py').replace('/', '.')
    mirror = f'tests/unit/{pathlib.Path(path).parent}/test_'
    words = set(re.split(r'[/_.]', path.removesuffix('.py')))
    scored = []
    for file, text in _tests().items():
        shared = words & set(re.split(r'[/_.]', file))
        score = len(shared) / (1 + len(words))
        if file.startswith(mirror):
            score += 0.5
        if module in text or _imported_as(module) in text:
            score += 1
        scored.append((-score, file))
    return [file for score, file in sorted(scored)[:NEAREST]]


def _imported_as(module: str) -> str:
    package, _, name = module.rpartition('.')
    return f'from {package} import {name}\n'


@functools.cache
def _tests() -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for path in sorted((ROOT / 'tests').rglob('test_*.py'))
    }


def copy_tree(to: pathlib.Path) -> None:
    files = subprocess.run(
        ['git', 'ls-files', '-co', '--exclude-standard', '-z'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, files.split('\0')):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


_PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Tests:
    """The tests, on a copy of the tree; samples are always the same."""

    def __init__(self, tree: pathlib.Path):
        self.tree = tree
        # Commands that tests start import the copy, too.
        self.environment = os.environ | {
            'PYTHONPATH': str(tree),
            'MANILA_LITE_TEST_SEED': '0',
        }

    def notice(self, mutation: Mutation, *arguments: str) -> bool:
        """Return whether a test fails with the mutation, and not without it."""
        file = self.tree / PACKAGE / mutation.path
        original = file.read_bytes()
        shutil.rmtree(self.tree / '.pytest_cache', ignore_errors=True)
        mutation.apply(self.tree)
        try:
            failed = self._run('-x', *arguments) not in _PASSED
        finally:
            file.write_bytes(original)
        if not failed:
            return False
        code = self._run('--lf', '--lfnf=none', *arguments)
        if code == pytest.ExitCode.USAGE_ERROR:
            sys.exit('pytest does not know the tests: is the map of another tree?')
        return code in _PASSED

    def write_map(self, to: pathlib.Path) -> None:
        """Run the tests of `make test`, and record which of them run a line."""
        settings = self.tree / 'map.ini'
        settings.write_text(f'[run]\nrelative_files = true\ndata_file = {to}\n')
        self._run(
            f'--cov={PACKAGE}',
            f'--cov-config={settings}',
            '--cov-context=test',
            '--cov-report=',
            *TIERS['test'],
        )
        if not to.exists():
            sys.exit('There is no map: is pytest-cov installed?')

    def _run(self, *arguments: str) -> int:
        ended = subprocess.run(
            [
                *(sys.executable, '-m', 'pytest', '-q', '-n', '2'),
                *('--timeout', '120', *arguments),
            ],
            cwd=self.tree,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return ended.returncode


class Map:
    """Which tests run a line in their own process."""

    def __init__(self, file: pathlib.Path):
        import coverage

        self._data = coverage.CoverageData(basename=str(file))
        self._data.read()

    def tests_of(self, mutation: Mutation) -> list[str]:
        """Return the tests that run one of its lines, the nearest first.

        What runs when a module is imported is in no test: then those that run
        anything of the module.
        """
        contexts = self._data.contexts_by_lineno(f'{PACKAGE}/{mutation.path}')
        last = mutation.line + mutation.old.count('\n')
        for lines in (range(mutation.line, last + 1), contexts):
            found = {
                context.rpartition('|')[0]
                for line in lines
                for context in contexts.get(line, ())
            } - {''}
            if found:
                break
        files = nearest(mutation.path)
        return sorted(
            found, key=lambda test: (test.partition('::')[0] not in files, test)
        )


def caught_by(tests: Tests, mutation: Mutation, tier: str, lines: Map | None) -> str:
    """Return what catches a mutation, or ''."""
    running = lines.tests_of(mutation) if lines else []
    if not running and tests.notice(mutation, *nearest(mutation.path)):
        return 'nearest'
    for part in (running[:FIRST], running[FIRST:]):
        if part:
            chosen = tests.tree / 'chosen.txt'
            chosen.write_text('\n'.join(part))
            if tests.notice(mutation, f'@{chosen}', *TIERS['test'][:2]):
                return 'map'
    for name, arguments in TIERS.items():
        if arguments and tests.notice(mutation, *arguments):
            return name
        if name == tier:
            break
    return ''


def plant(
    mutations: list[Mutation], tier: str, minutes: float, file: pathlib.Path | None
) -> float:
    """Try each mutation while there is time; return the part caught."""
    results: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory(prefix='mutations-') as folder:
        copy_tree(pathlib.Path(folder))
        tests = Tests(pathlib.Path(folder))
        if file and not file.exists():
            tests.write_map(file)
        lines = Map(file) if file else None
        deadline = time.monotonic() + 60 * minutes if minutes else float('inf')
        for mutation in mutations:
            if time.monotonic() > deadline:
                break
            result = caught_by(tests, mutation, tier, lines) or 'survived'
            results[result] += 1
            print(f'{result:8} {mutation}', flush=True)
    tried = results.total()
    print(f'{tried} mutations:', dict(results))
    return 1 - results['survived'] / tried if tried else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--count', type=int, default=20)
    parser.add_argument('--at', default='', help='only below this path')
    parser.add_argument('--tier', choices=TIERS, default='nearest')
    parser.add_argument('--minutes', type=float, default=0.0)
    parser.add_argument('--least', type=float, default=0.0)
    parser.add_argument('--map', type=pathlib.Path, help='made if it is absent')
    parser.add_argument('--list', action='store_true')
    args = parser.parse_args()
    mutations = choose(args.seed, args.count, args.at)
    if args.list:
        print(*mutations, sep='\n')
    elif (
        plant(mutations, args.tier, args.minutes, args.map and args.map.absolute())
        < args.least
    ):
        sys.exit(f'less than {args.least:.0%} were caught')


if __name__ == '__main__':
    main()
