"""The operators of extra specs, value by value."""

from hypothesis import given, strategies as st
import pytest

from manila_lite.scheduler.filters.capabilities import matches, mismatch_reason
from tests.unit.scheduler.builders import pool

# fmt: off
OPERATORS = [
    # extra spec          met by                    not met by
    ('= 10',              [10, 11, '12', 'infinite'], [9, 'x', None, '']),
    ('== 10',             [10, 10.0, '10'],         [9, 11, 'ten']),
    ('!= 10',             [9, '11'],                [10, '10', 'x']),
    ('>= 10',             [10, 10.5, 'infinite'],   [9.9, 'unknown']),
    ('<= 10',             [10, -1, '9'],            [10.1, 'infinite']),
    ('s== abc',           ['abc', 'ABC'],           ['abcd', '']),
    ('s!= abc',           ['abd', 1],               ['abc', 'Abc']),
    ('s< b',              ['a', 'az', 'A'],         ['b', 'c', 'B']),
    ('s<= b',             ['a', 'b'],               ['ba', 'c']),
    ('s> b',              ['ba', 'c'],              ['b', 'a']),
    ('s>= b',             ['b', 'c'],               ['a', 'az']),
    ('s== two words',     ['two words'],            ['two']),
    ('<in> NFS',          ['NFS', 'nfs_cifs'],      ['CIFS', 'FS']),
    ('<IN> nfs',          ['NFS_CIFS'],             ['CIFS']),
    ('<is> True',         [True, 1, 'true', 'Yes'], [False, 0, 'no', 'x']),
    ('<is> False',        [False, 0, 'off', None],  [True, 1, 'x']),
    ('<is> on',           [True],                   [False]),
    ('<is> perhaps',      [],                       [True, False, 'perhaps']),
    ('<or> a <or> B c',   ['A', 'b c'],             ['b', 'c', 'a <or> b']),
    ('<or> 1 <or> 2.0',   [1, 2, '1'],              [3, '2', True and 4]),
    ('<or> True',         [True, 'True'],           [False]),
    ('plain',             ['plain', 'Plain'],       ['plain text']),
    ('Straße',            ['STRASSE'],              ['Gasse']),
    ('two words',         ['two words'],            ['two']),
    (' padded ',          ['padded'],               [' padded ']),
    ('10',                [10, 10.0, '10'],         [11, '10.0', True]),
    ('1.10',              ['1.10', 1.1],            ['1.1']),
    ('True',              [True, 'True', 'true'],   [False, 1]),
    ('yes',               [True, 'yes'],            [False]),
    ('false',             [False],                  [True, 0, None]),
    # an operator without an operand, or glued to it, is no operator
    ('>=',                [],                       [1, 0, '']),
    ('s!=',               [],                       ['', 'x']),
    ('<in>',              [],                       ['', 'x']),
    ('<is>',              [],                       [True, False, '']),
    ('<or>',              [],                       ['', True]),
    ('>= ten',            [],                       [1, 100]),
    ('>=10',              ['>=10'],                 [10, 11]),
    # a list is met by any one of its values
    ('<is> True',         [[True, False]],          [[False], []]),
    ('share',             [['share', 'server']],    [['server'], []]),
    ('>= 5',              [[1, 5]],                 [[1, 4]]),
    ('<in> NFS',          [['CIFS', 'NFS']],        [['CIFS']]),
]
# fmt: on
CASES = [
    (wanted, value, expected)
    for wanted, met, unmet in OPERATORS
    for values, expected in ((met, True), (unmet, False))
    for value in values
]


@pytest.mark.facts('extra_specs_case_insensitive')
@pytest.mark.parametrize('wanted, value, expected', CASES)
def test_operator(wanted, value, expected):
    assert matches(value, wanted) is expected


def test_every_published_operator_is_in_the_table():
    published = '= == != >= <= s== s!= s< s<= s> s>= <in> <is> <or>'
    assert set(published.split()) <= {wanted.split()[0] for wanted, _, _ in OPERATORS}


@given(
    st.text(max_size=30),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.text())
    | st.dictionaries(st.text(), st.text()),
)
def test_any_value_can_be_compared(wanted, value):
    assert matches(value, wanted) in (True, False)


# fmt: off
KEYS = [
    # key                              extra spec   reason
    ('tier',                           'ssd',       None),
    ('tier',                           'disk',
     "tier is 'ssd', wanted 'disk'"),
    ('capabilities:tier',              'ssd',       None),
    ('capabilities:tier',              'disk',
     "capabilities:tier is 'ssd', wanted 'disk'"),
    ('capabilities:cache:size',        '>= 8',      None),
    ('capabilities:cache:size',        '>= 9',
     "capabilities:cache:size is 8, wanted '>= 9'"),
    ('capabilities:tier:deep',         'x',
     'it does not report capabilities:tier:deep'),
    ('colour',                         'red',
     'it does not report colour'),
    ('empty',                          '<is> False',
     'it does not report empty'),
    ('thin_provisioning',              '<is> False', None),
    ('thin_provisioning',              '<is> True',
     "thin_provisioning is False, wanted '<is> True'"),
    ('availability_zones',             'east',      None),
    ('default_qos_type',               'x',         None),
    ('provisioning:max_share_size',    '5',         None),
    ('vendor:tier',                    'disk',      None),
]
# fmt: on


@pytest.mark.parametrize('key, wanted, reason', KEYS)
def test_which_capability_a_key_means(key, wanted, reason):
    candidate = pool(capabilities={'tier': 'ssd', 'cache': {'size': 8}, 'empty': None})
    assert mismatch_reason(candidate, key, wanted) == reason
