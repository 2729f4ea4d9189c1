"""Requests for the metadata of any resource."""

import typing

from tests.support.api_client import ApiClient

INVALID_ITEMS = (
    {'': 'x'},
    {'.': 'x'},
    {'..': 'x'},
    {'a/../b': 'x'},
    {'a/.': 'x'},
    {'x' * 256: 'x'},
    {'x': ''},
    {'x': 'x' * 1024},
    {'x': 1},
    {'x': None},
    {'x': {}},
)
"""Objects with a key or a value that metadata cannot have."""


def request_metadata(
    api: ApiClient,
    method: str,
    path: str,
    key: str = '',
    metadata: object = None,
    expect: int = 200,
) -> typing.Any:
    """Send a request to the metadata of the resource at `path`."""
    body = None if metadata is None else {'metadata': metadata}
    answer = api.request(method, f'{path}/metadata{key}', body, expect=expect)
    return answer.json if answer.body else None
