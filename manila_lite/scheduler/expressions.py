"""The language of filter_function and goodness_function.

    stats.free_capacity_gb > 100 and share.size <= extra.largest
    capabilities.ssd ? 90 : min(50, 100 - stats.utilization)

Operators by increasing precedence: `?:`, `or |`, `and &`, `not !`,
comparisons (which may be chained), `+ -`, `* / %`, signs, `^`. All
numbers are floats and strings cannot be concatenated, so no value grows
beyond the length of its expression.
"""

from collections.abc import Callable, Iterator, Mapping
import functools
import math
import operator
import re
from typing import Any, NoReturn

from manila_lite import exception
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest

Names = Mapping[str, Any]
Node = Callable[[Names], Any]
Operation = Callable[[Any, Any], Any]

MAX_LENGTH = 4096
MAX_DEPTH = 32

_TRUE = frozenset({'true', 't', 'yes', 'y', 'on', '1'})
_FALSE = frozenset({'false', 'f', 'no', 'n', 'off', '0'})


class _EvaluationError(Exception):
    """An expression has no value; `evaluate` adds the expression."""


def to_number(value: object) -> float | None:
    """Return the value as a number; None when it is not one."""
    if not isinstance(value, (int, float, str)):
        return None
    try:
        result = float(value)
    except ValueError:
        return math.inf if value == 'infinite' else None
    except OverflowError:
        return None
    return None if math.isnan(result) else result


def to_bool(value: object) -> bool | None:
    """Return the value as a boolean; None when it is not one."""
    if value is None:
        return False
    if isinstance(value, (bool, int, float)):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def evaluate(expression: str, names: Names) -> Any:
    """Evaluate the expression; raise InvalidExpression on failure."""
    try:
        return _compiled(expression)(names)
    except _EvaluationError as error:
        raise exception.InvalidExpression(
            expression=expression[:200], reason=error
        ) from None


def names_for(pool: Pool, request: PlacementRequest) -> Names:
    """Return the names that an expression may refer to."""
    known = {
        'total_capacity_gb': pool.total_gb,
        'free_capacity_gb': pool.free_gb,
        'allocated_capacity_gb': pool.allocated_gb,
    }
    return {
        'share': {
            'size': request.size,
            'share_proto': request.share_proto,
            **request.share,
        },
        'capabilities': pool.capabilities,
        'stats': {
            **pool.capabilities,
            'host': pool.host,
            **{k: v for k, v in known.items() if v is not None},
        },
        'extra': request.extra_specs,
    }


# Values


def _fail(reason: str) -> NoReturn:
    raise _EvaluationError(reason)


def _number(value: object) -> float:
    result = to_number(value)
    return _fail(f'{value!r} is not a number') if result is None else result


def _boolean(value: object) -> bool:
    result = to_bool(value)
    if result is None:
        _fail(f'{value!r} is neither true nor false')
    return result


def _equal(left: object, right: object) -> bool:
    a, b = to_number(left), to_number(right)
    if a is not None and b is not None:
        return a == b
    if isinstance(left, bool) or isinstance(right, bool):
        return to_bool(left) is to_bool(right)
    return str(left) == str(right)


def _numeric(operation: Callable[..., float]) -> Callable[..., float]:
    def apply(*values: object) -> float:
        try:
            result = operation(*map(_number, values))
        except (ArithmeticError, ValueError, TypeError) as error:
            _fail(str(error))
        if math.isnan(result):
            _fail('the result is undefined')
        return result

    return apply


def _lookup(path: list[str]) -> Node:
    def node(names: Names) -> Any:
        value: Any = names
        for part in path:
            if not isinstance(value, Mapping) or part not in value:
                _fail(f'there is no {".".join(path)}')
            value = value[part]
        return value

    return node


_FUNCTIONS = {
    'abs': _numeric(abs),
    'max': _numeric(lambda *values: max(values)),
    'min': _numeric(lambda *values: min(values)),
}
_CONSTANTS = {'true': True, 'True': True, 'false': False, 'False': False}
_COMPARISONS: dict[str, Operation] = {
    '==': _equal,
    '!=': lambda a, b: not _equal(a, b),
    '<>': lambda a, b: not _equal(a, b),
    '<': lambda a, b: _number(a) < _number(b),
    '<=': lambda a, b: _number(a) <= _number(b),
    '>': lambda a, b: _number(a) > _number(b),
    '>=': lambda a, b: _number(a) >= _number(b),
}
_ARITHMETIC: dict[str, tuple[int, Operation]] = {
    '+': (1, _numeric(operator.add)),
    '-': (1, _numeric(operator.sub)),
    '*': (2, _numeric(operator.mul)),
    '/': (2, _numeric(operator.truediv)),
    '%': (2, _numeric(operator.mod)),
}
_NEGATE = _numeric(operator.neg)
_POWER = _numeric(math.pow)  # ** would give complex numbers


# Syntax

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number> \d+(?:\.\d*)?(?:[eE][+-]?\d+)? | \.\d+(?:[eE][+-]?\d+)? )
  | (?P<text> "[^"]*" | '[^']*' )
  | (?P<name> [A-Za-z_]\w*(?:\.\w+)* )
  | (?P<sign> == | != | <> | <= | >= | [-+*/%^<>!&|?:(),] )
  | (?P<end> \Z )
)""",
    re.VERBOSE | re.ASCII,
)


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    if len(expression) > MAX_LENGTH:
        _fail(f'it is longer than {MAX_LENGTH} characters')
    at = 0
    while True:
        match = _TOKEN.match(expression, at)
        if match is None:
            _fail(f'unexpected {expression[at:].lstrip()[:20]!r}')
        kind = str(match.lastgroup)
        yield kind, match[kind]
        at = match.end()


class _Parser:
    """A recursive descent parser: one method per precedence level."""

    def __init__(self, expression: str):
        self.tokens = _tokens(expression)
        self.depth = 0
        self.kind, self.text = next(self.tokens)

    def parse(self) -> Node:
        node = self.ternary()
        if self.kind != 'end':
            _fail(f'unexpected {self.text!r}')
        return node

    def accept(self, *texts: str) -> str | None:
        """Consume and return the current token if it is one of these."""
        if self.kind not in ('sign', 'name') or self.text not in texts:
            return None
        return self.advance()

    def expect(self, text: str) -> None:
        if not self.accept(text):
            _fail(f'expected {text!r}, found {self.text or "the end"!r}')

    def advance(self) -> str:
        text = self.text
        self.kind, self.text = next(self.tokens)
        return text

    def nested(self, level: Callable[[], Node]) -> Node:
        """Parse one level deeper; limits recursion for the stack."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            _fail(f'it is nested deeper than {MAX_DEPTH} levels')
        node = level()
        self.depth -= 1
        return node

    def ternary(self) -> Node:
        condition = self.disjunction()
        if not self.accept('?'):
            return condition
        yes = self.nested(self.ternary)
        self.expect(':')
        no = self.nested(self.ternary)
        return lambda names: (yes if _boolean(condition(names)) else no)(names)

    def disjunction(self) -> Node:
        nodes = [self.conjunction()]
        while self.accept('or', '|'):
            nodes.append(self.conjunction())
        if len(nodes) == 1:
            return nodes[0]
        return lambda names: any(_boolean(node(names)) for node in nodes)

    def conjunction(self) -> Node:
        nodes = [self.negation()]
        while self.accept('and', '&'):
            nodes.append(self.negation())
        if len(nodes) == 1:
            return nodes[0]
        return lambda names: all(_boolean(node(names)) for node in nodes)

    def negation(self) -> Node:
        if not self.accept('not', '!'):
            return self.comparison()
        node = self.nested(self.negation)
        return lambda names: not _boolean(node(names))

    def comparison(self) -> Node:
        first = self.arithmetic(1)
        rest: list[tuple[Operation, Node]] = []
        while sign := self.accept(*_COMPARISONS):
            rest.append((_COMPARISONS[sign], self.arithmetic(1)))

        def node(names: Names) -> bool:
            left = first(names)
            for compare, operand in rest:
                right = operand(names)
                if not compare(left, right):
                    return False
                left = right
            return True

        return node if rest else first

    def arithmetic(self, level: int) -> Node:
        """Parse a chain of `+ -` (level 1) or of `* / %` (level 2)."""
        if level > 2:
            return self.signed()
        first = self.arithmetic(level + 1)
        signs = [s for s, (of, _) in _ARITHMETIC.items() if of == level]
        rest: list[tuple[Operation, Node]] = []
        while sign := self.accept(*signs):
            rest.append((_ARITHMETIC[sign][1], self.arithmetic(level + 1)))

        def node(names: Names) -> Any:
            value = first(names)
            for apply, operand in rest:
                value = apply(value, operand(names))
            return value

        return node if rest else first

    def signed(self) -> Node:
        sign = self.accept('-', '+')
        if sign is None:
            return self.power()
        node = self.nested(self.signed)
        if sign == '+':
            return lambda names: _number(node(names))
        return lambda names: _NEGATE(node(names))

    def power(self) -> Node:
        base = self.operand()
        if not self.accept('^'):
            return base
        exponent = self.nested(self.signed)
        return lambda names: _POWER(base(names), exponent(names))

    def operand(self) -> Node:
        if self.accept('('):
            node = self.nested(self.ternary)
            self.expect(')')
            return node
        kind, text = self.kind, self.text
        if kind in ('end', 'sign') or text in ('and', 'or', 'not'):
            _fail(f'a value is missing before {text or "the end"!r}')
        self.advance()
        if kind == 'name':
            return self.name(text)
        value = float(text) if kind == 'number' else text[1:-1]
        return lambda names: value

    def name(self, text: str) -> Node:
        if self.accept('('):
            return self.call(text)
        if text in _CONSTANTS:
            return lambda names: _CONSTANTS[text]
        return _lookup(text.split('.'))

    def call(self, name: str) -> Node:
        function = _FUNCTIONS.get(name)
        if function is None:
            _fail(f'there is no function {name}')
        arguments = [self.nested(self.ternary)]
        while self.accept(','):
            arguments.append(self.nested(self.ternary))
        self.expect(')')
        return lambda names: function(*[node(names) for node in arguments])


@functools.lru_cache(maxsize=256)
def _compiled(expression: str) -> Node:
    """Compile the expression; a broken one raises its error when called."""
    try:
        return _Parser(expression).parse()
    except _EvaluationError as error:
        reason = str(error)
        return lambda names: _fail(reason)
