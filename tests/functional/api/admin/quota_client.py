"""Requests for quotas of projects and of the default class."""

import typing

from manila_lite.quota.limits import RESOURCES
from tests.support.api_client import ApiClient

KEYS_TOO_EARLY = [
    (resource.name, f'2.{int(resource.since[2:]) - 1}')
    for resource in RESOURCES
    if resource.since != '2.0'
]


def put_limits(
    api: ApiClient,
    path: str,
    key: str,
    values: object,
    expect: int = 200,
    version: str | None = None,
) -> typing.Any:
    """Change limits; return the limits or the message of the error."""
    answer = api.request(
        'PUT', path, {key: values}, expect=expect, version=version
    ).json
    return answer[key] if expect == 200 else answer['badRequest']['message']
