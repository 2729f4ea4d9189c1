"""Match extra specs against the capabilities of pools."""

from collections.abc import Callable, Mapping
import functools
import operator

from manila_lite.scheduler.expressions import to_bool, to_number
from manila_lite.scheduler.pools import Pool

Test = Callable[[object], bool]

# Extra specs without a scope that are for the API, not for the scheduler.
NOT_CAPABILITIES = frozenset({'availability_zones', 'default_qos_type'})
# Capabilities that have a default when a driver does not report them.
WHEN_ABSENT = {'thin_provisioning': False}

_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    '=': operator.ge,  # published: "equal to or greater than"
    '==': operator.eq,
    '!=': operator.ne,
    '>=': operator.ge,
    '<=': operator.le,
}
_STRINGS: dict[str, Callable[[str, str], bool]] = {
    's==': operator.eq,
    's!=': operator.ne,
    's<': operator.lt,
    's<=': operator.le,
    's>': operator.gt,
    's>=': operator.ge,
    '<in>': operator.contains,
}


def mismatch_reason(pool: Pool, key: str, wanted: str) -> str | None:
    """Return why the pool does not match the extra spec; None if it does."""
    path = _path(key)
    if path is None:
        return None
    capability = _capability(pool, path)
    if capability is None:
        return f'it does not report {key}'
    if matches(capability, wanted):
        return None
    return f'{key} is {capability!r}, wanted {wanted!r}'


def matches(capability: object, wanted: str) -> bool:
    """Whether the capability, or any value of a list, matches.

    As published, upper and lower case are the same in texts.
    """
    test = _test(wanted)
    if isinstance(capability, (list, tuple)):
        return any(test(value) for value in capability)
    return test(capability)


@functools.lru_cache(maxsize=1024)
def _path(key: str) -> tuple[str, ...] | None:
    """Return the path of the capability; None if the spec has none."""
    scope, *rest = key.split(':')
    if scope == 'capabilities' and rest:
        return tuple(rest)
    return None if rest or key in NOT_CAPABILITIES else (key,)


def _capability(pool: Pool, path: tuple[str, ...]) -> object:
    first, *rest = path
    found = pool.capabilities.get(first, WHEN_ABSENT.get(first))
    for part in rest:
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


@functools.lru_cache(maxsize=1024)
def _test(wanted: str) -> Test:
    wanted = wanted.strip().casefold()
    sign, _, operand = wanted.partition(' ')
    operand = operand.strip()
    if sign in _NUMBERS:
        return _compare_numbers(_NUMBERS[sign], to_number(operand))
    if sign in _STRINGS:
        compare = _STRINGS[sign]
        return lambda value: bool(operand) and compare(str(value).casefold(), operand)
    if sign == '<is>':
        return _is(to_bool(operand))
    if sign == '<or>':
        values = filter(None, map(str.strip, wanted.split('<or>')))
        tests = [_equals(v) for v in values]
        return lambda value: any(test(value) for test in tests)
    return _equals(wanted)


def _compare_numbers(
    compare: Callable[[float, float], bool], operand: float | None
) -> Test:
    def test(value: object) -> bool:
        left = to_number(value)
        return left is not None and operand is not None and compare(left, operand)

    return test


def _is(operand: bool | None) -> Test:
    return lambda value: operand is not None and to_bool(value) is operand


def _equals(wanted: str) -> Test:
    as_truth, as_number = to_bool(wanted), to_number(wanted)

    def test(value: object) -> bool:
        if isinstance(value, bool):
            return value is as_truth
        if isinstance(value, (int, float)):
            return value == as_number
        # Strings are compared as strings: version '1.10' is not '1.1'.
        return str(value).casefold() == wanted

    return test
