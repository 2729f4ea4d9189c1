"""Bodies are checked as declared, and the JSON Schema agrees."""

from hypothesis import given, settings, strategies as st
import jsonschema
import pytest

from manila_lite import exception
from manila_lite.api import schema as s
from tests.support import sampling

UUID = '0c1a8c31-1d5e-4a0b-8f3a-4b0e1c6c5a11'


def error_text(make, value, minor=99):
    """Return the error text of a refused value."""
    with pytest.raises(exception.InvalidInput) as caught:
        s.schema(x=make).check({'x': value}, minor)
    return caught.value.msg.removeprefix('Invalid input received: ')


def checked_value(make, value, minor=99):
    return s.schema(x=make).check({'x': value}, minor)['x']


@pytest.mark.parametrize(
    'make, value, result',
    [
        (s.string(3), 'abc', 'abc'),
        (s.string(3), '', ''),
        (s.string(nullable=True), None, None),
        (s.string(2), '😀😀', '😀😀'),
        (s.string(pattern='a+'), 'aa', 'aa'),
        (s.positive_int, 1, 1),
        (s.positive_int, '10', 10),
        (s.positive_int, '007', 7),
        (s.positive_int, 2**31 - 1, 2**31 - 1),
        (s.non_negative_int, 0, 0),
        (s.integer(-1), '-1', -1),
        (s.integer(1, nullable=True), None, None),
        (s.boolean, True, True),
        (s.boolean, False, False),
        (s.boolean, 'true', True),
        (s.boolean, 'FALSE', False),
        (s.boolean, '1', True),
        (s.boolean, 0, False),
        (s.boolean, 'On', True),
        (s.boolean, 'no', False),
        (s.uuid, UUID, UUID),
        (s.uuid, UUID.upper(), UUID.upper()),
        (s.uuid, UUID.replace('-', ''), UUID.replace('-', '')),
        (s.one_of('rw', 'ro', None), None, None),
        (s.one_of(1), 1, 1),
        (s.metadata, {'k': 'v'}, {'k': 'v'}),
        (s.metadata, {}, {}),
        (s.array(s.positive_int), ['1', 2], [1, 2]),
        (s.mapping(s.boolean, nullable=True), None, None),
        (s.obj(['a'], a=s.boolean), {'a': 'y', 'b': 1}, {'a': True}),
        (s.obj(nullable=True), None, None),
        (s.anything, {'any': [None]}, {'any': [None]}),
    ],
)
def test_value_is_accepted_and_converted(make, value, result):
    found = checked_value(make, value)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    'make, value, text',
    [
        (s.string(3), 'abcd', 'x must be a string of 0 to 3 characters'),
        (s.string(3), None, 'x must be a string of 0 to 3 characters'),
        (s.string(3), 5, 'x must be a string of 0 to 3 characters'),
        (
            s.string(3, 1, nullable=True),
            '',
            'x must be a string of 1 to 3 characters or null',
        ),
        (s.string(pattern='a+', description='some a'), 'ab', 'x must be some a'),
        (s.string(pattern='a'), 'a\n', 'x must be a string of 0 to 255 characters'),
        (s.integer(1, 9), 0, 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), 10, 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), True, 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), 1.0, 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), None, 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), '', 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), '٣', 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), ' 1', 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), '+1', 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), '1' * 5000, 'x must be an integer from 1 to 9'),
        (s.integer(1, 9), [1], 'x must be an integer from 1 to 9'),
        (s.boolean, 'maybe', 'x must be a boolean'),
        (s.boolean, None, 'x must be a boolean'),
        (s.boolean, 2, 'x must be a boolean'),
        (s.boolean, 1.0, 'x must be a boolean'),
        (s.boolean, [], 'x must be a boolean'),
        (s.uuid, 'abc', 'x must be a UUID'),
        (s.uuid, UUID + '\n', 'x must be a UUID'),
        (s.one_of('rw', 'ro'), 'wr', 'x must be one of: rw, ro'),
        (s.one_of(1), True, 'x must be one of: 1'),
        (s.one_of('a', None), {}, 'x must be one of: a, null'),
        (s.metadata, [], 'x must be an object'),
        (s.metadata, {'k': ''}, 'x.k must be a string of 1 to 1023 characters'),
        (s.metadata, {'k': 'v' * 1024}, 'x.k must be a string of 1 to 1023 characters'),
        (
            s.metadata,
            {'': 'v'},
            'x. must be a string of 1 to 255 characters without white space '
            'at either end, and without . and .. as a part of a path',
        ),
        (s.array(s.positive_int, 2), [1, 2, 3], 'x must be a list of 0 to 2 items'),
        (s.array(s.boolean), [True, 'x'], 'x.1 must be a boolean'),
        (s.obj(['a'], a=s.boolean), {}, 'x.a is required'),
        (s.obj(a=s.obj(b=s.boolean)), {'a': {'b': 3}}, 'x.a.b must be a boolean'),
        (s.obj(extra='refuse'), {'b': 1}, 'x.b is not accepted here'),
        (s.obj(), None, 'x must be an object'),
    ],
)
def test_error_names_the_field_and_the_rule(make, value, text):
    assert error_text(make, value) == text


def test_error_does_not_repeat_the_value():
    assert 'hunter2' not in error_text(s.uuid, 'hunter2')


LATER = s.schema(
    ['must'],
    soft=s.since('2.50', s.boolean),
    hard=s.since('2.50', s.boolean, below='refuse'),
    old=s.until('2.49', s.boolean, above='refuse'),
    between=s.since('2.7', s.until('2.9', s.boolean)),
    must=s.since('2.50', s.boolean),
)


def test_field_outside_its_versions_is_dropped_or_refused():
    assert LATER.check({'soft': 'nonsense'}, 49) == {}
    assert LATER.check({'soft': 'y', 'must': 1}, 50) == {'soft': True, 'must': True}
    with pytest.raises(exception.InvalidInput, match='hard is not accepted'):
        LATER.check({'hard': True}, 49)
    assert LATER.check({'old': True}, 49) == {'old': True}
    with pytest.raises(exception.InvalidInput, match='old is not accepted'):
        LATER.check({'old': True, 'must': True}, 50)


def test_field_is_required_only_where_it_exists():
    assert LATER.check({}, 49) == {}
    with pytest.raises(exception.InvalidInput, match='must is required'):
        LATER.check({}, 50)


@pytest.mark.parametrize(
    'minor, args', [(6, {}), (7, {'between': True}), (9, {'between': True}), (10, {})]
)
def test_windows_may_be_nested(minor, args):
    assert LATER.check({'between': True}, minor) == args


ALIASED = s.schema(
    ['name'],
    name=s.alias('display_name', s.string()),
    kind=s.alias('type', s.string(), when_both='refuse'),
)


@pytest.mark.parametrize(
    'body, args',
    [
        ({'name': 'a'}, {'name': 'a'}),
        ({'display_name': 'a'}, {'name': 'a'}),
        ({'name': 'a', 'display_name': 'b'}, {'name': 'a'}),
        ({'display_name': 'b', 'name': 'a'}, {'name': 'a'}),
        ({'name': 'a', 'type': 't'}, {'name': 'a', 'kind': 't'}),
    ],
)
def test_alias_is_another_name(body, args):
    assert ALIASED.check(body, 0) == args


def test_both_names_may_be_refused():
    with pytest.raises(exception.InvalidInput, match='type excludes kind'):
        ALIASED.check({'name': 'a', 'kind': 't', 'type': 't'}, 0)


def test_error_uses_the_name_that_was_sent():
    with pytest.raises(exception.InvalidInput, match='display_name must'):
        ALIASED.check({'display_name': 5}, 0)


@pytest.mark.parametrize(
    'extra, args', [('drop', {'a': True}), ('allow', {'a': True, 'b': 1})]
)
def test_unknown_keys_are_dropped_or_allowed(extra, args):
    assert s.schema(a=s.boolean, extra=extra).check({'a': True, 'b': 1}, 0) == args


def test_wrapper_is_part_of_the_path():
    body = s.schema(['a'], wrapper='share', a=s.boolean)
    with pytest.raises(exception.InvalidInput, match='share.a is required'):
        body.arguments({'share': {}}, 0)
    with pytest.raises(exception.InvalidInput, match='share must be an'):
        body.arguments({'share': None}, 0)


def test_null_is_an_empty_object_if_nothing_is_required():
    body = s.schema(wrapper='share', a=s.boolean)
    assert body.arguments({'share': None}, 0) == {}


def test_body_may_be_a_single_type():
    body = s.body_of(s.metadata, wrapper='metadata', missing=400)
    assert body.arguments({'metadata': {'a': 'b'}}, 0) == {'a': 'b'}
    with pytest.raises(exception.InvalidInput, match='metadata is required'):
        body.arguments({}, 0)
    assert s.body_of(s.anything).check('share-id', 0) == 'share-id'


@pytest.mark.parametrize(
    'make',
    [
        lambda: s.schema(['b'], a=s.boolean),
        lambda: s.schema(extra='ignore'),
        lambda: s.since('2.5', s.boolean, below='ignore'),
        lambda: s.alias('b', s.boolean, when_both='second'),
    ],
)
def test_contradictory_schema_is_refused_when_declared(make):
    with pytest.raises(ValueError, match='required but|none of|neither'):
        make()


# The exported JSON Schema accepts exactly the same values.

EVERYTHING = s.schema(
    ['size'],
    wrapper='share',
    size=s.positive_int,
    low=s.integer(-5, 5, nullable=True),
    name=s.alias('display_name', s.string(4, 1, nullable=True)),
    type=s.alias('volume_type', s.string(), when_both='refuse'),
    uuid=s.uuid,
    public=s.boolean,
    level=s.one_of('rw', 'ro', None),
    later=s.since('2.50', s.boolean, below='refuse'),
    dropped=s.since('2.50', s.boolean),
    tags=s.array(s.string(2), 2, 1),
    metadata=s.metadata,
    hints=s.obj(
        ['same'],
        extra='refuse',
        nullable=True,
        same=s.string(3),
        only=s.since('2.67', s.string(3)),
    ),
)
FIELDS = [
    'size',
    'low',
    'name',
    'display_name',
    'type',
    'volume_type',
    'uuid',
    'public',
    'level',
    'later',
    'dropped',
    'tags',
    'metadata',
    'hints',
    'same',
    'only',
    'other',
]
values = st.recursive(
    st.sampled_from(
        [
            None,
            True,
            False,
            0,
            1,
            -1,
            6,
            2**31,
            '1',
            '-3',
            'true',
            'no',
            'rw',
            '',
            'a',
            'abcd',
            'abcde',
            UUID,
            'x' * 1024,
        ]
    )
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=sampling.examples(2400, 75), deadline=None)
@given(
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=4)
    | st.fixed_dictionaries(
        {'size': st.just(5)},
        optional={
            'name': st.just('ab'),
            'metadata': values,
            'hints': values,
            'tags': values,
            'level': values,
        },
    ),
    st.sampled_from([0, 49, 50, 66, 67, 99]),
)
def test_json_schema_accepts_the_same_values(inside, minor):
    body = {'share': inside}
    rules = EVERYTHING.json_schema(minor)
    jsonschema.Draft202012Validator.check_schema(rules)
    try:
        EVERYTHING.arguments(body, minor)
    except exception.Invalid:
        accepted = False
    else:
        accepted = True
    valid = jsonschema.Draft202012Validator(rules).is_valid(body)
    assert valid == accepted


@pytest.mark.parametrize('sent', [None, ''])
def test_empty_optional_id_is_not_given(sent):
    check = s.optional_id(36).at(0)
    assert check(sent) is None
    assert check('gold') == 'gold'
    for refused in (' ', 'a ', 37 * 'a', 1):
        with pytest.raises(s.ValidationError):
            check(refused)
