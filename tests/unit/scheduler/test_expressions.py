"""The language of filter and goodness functions."""

import contextlib
import math
import time

from hypothesis import given, strategies as st
import pytest

from manila_lite import exception
from manila_lite.scheduler.expressions import (
    MAX_DEPTH,
    MAX_LENGTH,
    evaluate,
    names_for,
    to_bool,
    to_number,
)
from tests.unit.scheduler.builders import pool, request

NAMES = {
    'share': {'size': 5, 'name': 'x', 'snapshot_id': None},
    'capabilities': {
        'free': 'infinite',
        'total': 'unknown',
        'ssd': True,
        'deep': {'er': 3},
        'list': [1, 2],
    },
    'extra': {'iops': '500', 'flag': 'true'},
}

# fmt: off
VALUES = [
    ('1', 1), ('1.5', 1.5), ('.5', 0.5), ('1e3', 1000), ('2.e-1', 0.2),
    ("'a b'", 'a b'), ('"a"', 'a'), ('true', True), ('False', False),
    ('1 + 2 * 3', 7), ('(1 + 2) * 3', 9), ('7 - 2 - 1', 4), ('8 / 4 / 2', 1),
    ('7 % 4', 3), ('2 ^ 3', 8), ('2 ^ 3 ^ 2', 512), ('-2 ^ 2', -4),
    ('2 ^ -1', 0.5), ('- -3', 3), ('+3', 3), ('3 - -3', 6), ('2 * -3', -6),
    ('1 < 2', True), ('2 <= 2', True), ('1 > 2', False), ('2 >= 3', False),
    ('1 == 1.0', True), ('1 != 1', False), ('1 <> 2', True),
    ('1 < 2 < 3', True), ('1 < 3 < 2', False), ('3 > 2 == 2', True),
    ("'a' == 'a'", True), ("'a' == 'b'", False), ("'1' == 1", True),
    ("'a' != 1", True), ('1 == true', True), ('2 == true', False),
    ('1 and 0', False), ('1 & 1', True), ('0 or 1', True), ('0 | 0', False),
    ('1 or 0 and 0', True), ('not 1', False), ('!0', True), ('!!1', True),
    ('not 1 > 2', True), ('! 1 == 2', True), ("'yes' and 'on'", True),
    ('1 ? 2 : 3', 2), ('0 ? 2 : 3', 3), ('0 ? 1 : 0 ? 2 : 3', 3),
    ('1 ? 0 ? 4 : 5 : 6', 5), ('1 < 2 ? 1 + 1 : 0', 2),
    ('abs(-3)', 3), ('max(1, 5, 3)', 5), ('min(4, 2 + 1)', 3), ('max(2)', 2),
    ('abs(min(-1, max(2, 3)))', 1),
    ('share.size', 5), ('share.size * 2 > 9', True),
    ("share.name == 'x'", True), ('!share.snapshot_id', True),
    ('capabilities.free > 1000000', True), ('capabilities.deep.er', 3),
    ('capabilities.ssd == True', True), ('capabilities.ssd ? 9 : 1', 9),
    ('capabilities.list', [1, 2]), ("capabilities.total == 'unknown'", True),
    ('extra.iops >= 500', True), ('extra.iops + 1', 501),
    ('extra.flag == capabilities.ssd', True), ('extra.flag', 'true'),
    # branches that are not taken are not evaluated
    ('0 and nothing', False), ('1 or nothing', True),
    ('1 ? 2 : nothing', 2),
    (' \n1\t+ 1 ', 2),
]
ERRORS = [
    # syntax
    ('', 'a value is missing before'), ('1 +', 'a value is missing before'),
    ('1 2', "unexpected '2'"), ('(1', "expected ')'"),
    ('1)', "unexpected ')'"),
    ('1 ? 2', "expected ':'"), ('a = 1', "unexpected '= 1'"),
    ("'open", 'unexpected'), ('1 and', 'missing'), ('and 1', 'missing'),
    ('max()', 'missing'), ('max(1,', 'missing'), ('min(1 2)', "expected ')'"),
    ('1 $ 2', "unexpected '$ 2'"), ('1.2.3', "unexpected '.3'"),
    ('a[0]', "unexpected '[0]'"), ('lambda: 1', "unexpected ':'"),
    ('2 ** 3', 'missing'),
    # names
    ('nothing', 'there is no nothing'), ('share.no', 'there is no share.no'),
    ('share.name.x', 'there is no share.name.x'),
    ('share.__class__', 'there is no share.__class__'),
    ('open("x")', 'there is no function open'),
    ('share.size(1)', 'there is no function share.size'),
    # values
    ('1 / 0', 'division'), ('1 % 0', 'modulo'), ('9 ^ 9 ^ 9 ^ 9', 'range'),
    ('(-8) ^ 0.5', 'domain'), ('1e999 - 1e999', 'undefined'),
    ("1 + 'a'", "'a' is not a number"), ("'a' < 'b'", 'is not a number'),
    ('share.snapshot_id + 1', 'None is not a number'),
    ('capabilities.list > 1', 'is not a number'),
    ('capabilities.total > 1', "'unknown' is not a number"),
    ('share and 1', 'neither true nor false'),
    ("'maybe' ? 1 : 2", "'maybe' is neither true nor false"),
    ('abs(1, 2)', 'one argument'), ("-'a'", 'is not a number'),
]
# fmt: on


@pytest.mark.parametrize('expression, expected', VALUES)
def test_value(expression, expected):
    assert evaluate(expression, NAMES) == expected


@pytest.mark.parametrize('expression, reason', ERRORS)
def test_an_error_says_what_is_wrong(expression, reason):
    for _ in range(2):  # the second answer comes from the cache
        with pytest.raises(exception.InvalidExpression) as caught:
            evaluate(expression, NAMES)
        assert reason in str(caught.value)


@pytest.mark.parametrize('opening', ['(', '-', '!', 'abs(', '1?', '2^'])
def test_nesting_is_bounded(opening):
    with pytest.raises(exception.InvalidExpression, match='nested deeper'):
        evaluate(opening * (MAX_DEPTH + 1) + '1', NAMES)


def test_allowed_nesting_has_a_value():
    deep = '(' * MAX_DEPTH + '7' + ')' * MAX_DEPTH
    assert evaluate(deep, NAMES) == 7


def test_length_is_bounded():
    assert evaluate('1' + '+1' * (MAX_LENGTH // 2 - 1), NAMES) == 2048
    with pytest.raises(exception.InvalidExpression, match='longer than'):
        evaluate('1' * (MAX_LENGTH + 1), NAMES)


@pytest.mark.parametrize(
    'expression',
    [
        '*'.join(['9e300'] * 600),
        '^'.join(['9'] * 30),
        '9' * MAX_LENGTH,
        'max(' + ','.join(['1'] * 2000) + ')',
        "'" + 'a' * 4000,
    ],
)
def test_a_hostile_expression_ends_soon(expression):
    start = time.thread_time()
    with contextlib.suppress(exception.InvalidExpression):
        assert isinstance(evaluate(expression, {}), float)
    # Milliseconds, or a collection of garbage; without limits, for ever.
    assert time.thread_time() - start < 30


def arithmetic(inner):
    signs = st.sampled_from(['+', '-', '*', '/', '<', '<=', '==', '!='])
    return (
        st.tuples(inner, signs, inner).map('({0[0]} {0[1]} {0[2]})'.format)
        | inner.map('-{}'.format)
        | st.tuples(inner, inner).map('max({0[0]}, {0[1]})'.format)
    )


@given(st.recursive(st.integers(0, 99).map(str), arithmetic, max_leaves=12))
def test_arithmetic_agrees_with_python(expression):
    try:
        expected = eval(expression, {'max': max})
    except ZeroDivisionError:
        with pytest.raises(exception.InvalidExpression):
            evaluate(expression, {})
    else:
        assert math.isclose(evaluate(expression, {}), expected)


PIECES = st.sampled_from(
    [
        'share.size',
        'capabilities.list',
        'extra.iops',
        'no.name',
        '1',
        '2.5',
        "'a'",
        'and',
        'or',
        'not',
        '!',
        '&',
        '|',
        '?',
        ':',
        '(',
        ')',
        ',',
        '^',
        '+',
        '-',
        '*',
        '/',
        '%',
        '<',
        '>=',
        '==',
        'max(',
        'abs(',
    ]
)


@given(st.text(max_size=40) | st.lists(PIECES, max_size=15).map(' '.join))
def test_any_text_has_a_value_or_an_error(expression):
    # anything but InvalidExpression fails the test
    with contextlib.suppress(exception.InvalidExpression):
        evaluate(expression, NAMES)


def test_our_accounting_overrides_the_report():
    candidate = pool(
        host='alpha@gold#one',
        total_gb=50,
        free_gb=None,
        allocated_gb=7,
        capabilities={
            'free_capacity_gb': 'infinite',
            'total_capacity_gb': 49,
            'allocated_capacity_gb': 1,
        },
    )
    names = names_for(
        candidate, request(size=3, share={'project_id': 'p'}, extra_specs={'k': 'v'})
    )
    assert names['stats']['host'] == 'alpha@gold#one'
    assert names['stats']['total_capacity_gb'] == 50
    assert names['stats']['free_capacity_gb'] == 'infinite'
    assert names['stats']['allocated_capacity_gb'] == 7
    assert names['capabilities']['allocated_capacity_gb'] == 1
    assert names['share'] == {'size': 3, 'share_proto': 'NFS', 'project_id': 'p'}
    assert names['extra'] == {'k': 'v'}


@pytest.mark.parametrize(
    'value, expected',
    [
        (5, 5),
        (2.5, 2.5),
        (True, 1),
        ('7', 7),
        (' 7 ', 7),
        ('1e2', 100),
        ('infinite', math.inf),
        ('unknown', None),
        ('', None),
        (None, None),
        ('nan', None),
        (math.nan, None),
        ([1], None),
        (10**400, None),
    ],
)
def test_number(value, expected):
    assert to_number(value) == expected


@pytest.mark.parametrize(
    'value, expected',
    [
        (True, True),
        (False, False),
        (None, False),
        (0, False),
        (2.5, True),
        ('TRUE', True),
        (' yes ', True),
        ('1', True),
        ('off', False),
        ('0', False),
        ('', None),
        ('2', None),
        ('maybe', None),
        ([], None),
    ],
)
def test_truth(value, expected):
    assert to_bool(value) is expected
