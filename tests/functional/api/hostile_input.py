"""Malformed bodies, ids, queries and versions."""

import json
import typing

from hypothesis import strategies as st

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(width=32)
    | st.text(max_size=20)
    | st.sampled_from(
        [
            '',
            '\0',
            'x' * 256,
            'x' * 1024,
            '-1',
            '1e3',
            '٣',
            '\ud800',
            2**31,
            2**63,
            10**30,
            -1,
            0,
            1.0,
            1e308,
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=6,
)

RAW = {
    'nothing': b'',
    'blank': b' \n',
    'broken object': b'{',
    'broken list': b'[',
    'broken word': b'nul',
    'two values': b'{} {}',
    'trailing comma': b'{"share": {},}',
    'not a number': b'{"share": NaN}',
    'infinity': b'{"share": {"size": 1e999}}',
    'endless number': b'{"share": {"size": ' + b'9' * 5000 + b'}}',
    'not UTF-8': b'{"share": {"name": "\xff\xfe"}}',
    'UTF-16': json.dumps({'share': {}}).encode('utf-16'),
    'byte order mark': b'\xef\xbb\xbf{}',
    'lone surrogate': b'{"share": {"name": "\\ud800"}}',
    'NUL': b'{"share": {"name": "\\u0000"}}',
    'NUL as key': b'{"\\u0000": {}}',
    'deep lists': b'[' * 50_000 + b']' * 50_000,
    'deep objects': b'{"a":' * 15_000 + b'1' + b'}' * 15_000,
    'open brackets': b'[' * 100_000,
    'XML': b'<?xml version="1.0"?><share/>',
    'form': b'share=1&size=1',
    'python': b"{'share': {'size': 1}}",
    'too large': b'{"share": {"name": "' + b'x' * 200_000 + b'"}}',
}

IDS = [
    '00000000-0000-4000-8000-000000000000',
    'x' * 10_000,
    '-1',
    '0',
    'None',
    '%00',
    '%20',
    '%FF',
    '%F0%9F%A6%84',
    "'%20OR%201=1%20--",
    '%25',
    '*',
    '..',
    '%2e%2e',
    '%0a',
    '{id}',
    '[]',
    'a' * 255,
    '\\',
    ';',
    '%',
]

QUERIES = [
    'limit=99999999999999999999',
    'limit=-1',
    'limit=0x10',
    'limit=%D9%A3',
    'offset=2147483648',
    'offset=-1',
    'limit=1&limit=x',
    'limit=%00',
    'sort_key=%00',
    'sort_key=__class__',
    'sort_dir=',
    'marker=%FF',
    'all_tenants=maybe',
    'is_public=maybe',
    'with_count=maybe',
    'is_soft_deleted=maybe',
    'metadata=()',
    'metadata=__import__(1)',
    'metadata=' + '(' * 5000,
    'metadata={1:' * 200,
    'extra_specs={',
    'extra_specs=' + '[' * 5000,
    'name=%00',
    'name=%FF',
    'name~=%25%5C',
    'name=' + 'x' * 10_000,
    '=',
    '&&&',
    '%',
    '%zz',
    '\\',
    '&'.join(f'k{number}=1' for number in range(500)),
    'host=(',
    'pool=' + '(a%2B)' * 200,
    'capabilities={',
    'share_type=%00',
    'user_id=',
    'created_since=now',
    'created_before=9999-99-99',
    'created_since=0001-01-01T00:00:00%2B23:59',
    'project_id=%00',
    'share_id=[]',
    'export_location_path=' + 'x' * 3000,
    'availability_zone=%00',
    'ensuring=maybe',
    'status=%00',
]

VERSIONS = [
    '',
    ' ',
    '2',
    '2.',
    '.2',
    '2.100',
    '2.05',
    '02.5',
    '3.0',
    '1.0',
    '0.0',
    '-2.1',
    '+2.1',
    '2.-1',
    '2.1.1',
    'latest',
    'v2.1',
    '2,1',
    '2.1e0',
    '9' * 5000,
    '2.' + '9' * 5000,
    '2.\xb2',
    'shares 2.1',
]


VALUES = (
    None,
    True,
    0,
    -1,
    1.5,
    2**31,
    '',
    ' ',
    '0',
    'x' * 256,
    'x' * 2000,
    [],
    [{}],
    {},
    {'': ''},
    {'x': None},
)


def variations(valid: typing.Any) -> typing.Iterator[typing.Any]:
    """Yield the valid body with one value replaced, removed or added."""
    yield from VALUES
    if not isinstance(valid, dict):
        return
    yield valid | {'x': 'x'}
    for key, value in valid.items():
        rest = {name: other for name, other in valid.items() if name != key}
        yield rest
        yield rest | {key.upper(): value}
        for variation in variations(value):
            yield rest | {key: variation}


@st.composite
def corrupted_body(draw: st.DrawFn, valid: typing.Any) -> typing.Any:
    """Draw the valid body with one value replaced, removed or added."""
    if not isinstance(valid, dict) or draw(st.integers(0, 5)) == 0:
        return draw(JSON)
    key = draw(st.sampled_from([*valid, None]))
    if key is None:
        return valid | {draw(st.text(max_size=10)): draw(JSON)}
    rest = {name: value for name, value in valid.items() if name != key}
    if draw(st.integers(0, 5)) == 0:
        return rest
    return rest | {key: draw(corrupted_body(valid[key]))}
