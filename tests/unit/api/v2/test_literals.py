import pytest

from manila_lite import exception
from manila_lite.api.v2 import literals


@pytest.mark.parametrize(
    'text, found',
    [
        (None, {}),
        ('', {}),
        ('{}', {}),
        ("{'a': 'b', 'c': True, 5: None}", {'a': 'b', 'c': 'True', '5': 'None'}),
        ('{"a": "{1}"}', {'a': '{1}'}),
    ],
)
def test_an_object_is_read_as_text(text, found):
    query = {} if text is None else {'specs': text}
    assert literals.parse(query, 'specs') == found


@pytest.mark.parametrize(
    'text',
    [
        '{',
        'None',
        '[1]',
        "'a'",
        '{1, 2}',
        'f()',
        '{[]: 1}',
        '{**{}}',
        '[' * 4096,
        '(' * 4096,
        '-' * 4095 + '1',
        '{' * 300,
        '{1:' * 1000,
        '9' * 4097,
        "{'a': 1" + '+1' * 1000 + '}',
        '\ud800',
    ],
)
def test_anything_else_is_refused_by_name(text):
    with pytest.raises(exception.InvalidInput, match='specs must be'):
        literals.parse({'specs': text}, 'specs')


def test_object_with_too_many_keys_is_refused_by_name():
    pairs = {str(number): '' for number in range(literals.MAX_KEYS)}
    assert literals.parse({'specs': str(pairs)}, 'specs') == pairs
    pairs['one more'] = ''
    with pytest.raises(exception.InvalidInput, match='specs must have at most 20 keys'):
        literals.parse({'specs': str(pairs)}, 'specs')
