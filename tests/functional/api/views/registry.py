"""Requests that show each published view, and the items they return."""

from collections.abc import Callable
import typing

from manila_lite.api import versions
from tests.functional.api import published_api
from tests.functional.api.samples.cloud import SampleCloud
from tests.support.api_client import ApiClient

Items = list[dict[str, typing.Any]]
FetchItems = Callable[[SampleCloud, ApiClient, int], Items]
Path = Callable[[SampleCloud], str]

ALL_PERSONAS = ('admin', 'member')
ADMIN_ONLY = ('admin',)
ALL_TENANTS = 'all_tenants=1'
"""Query of an administrator for the resources of all projects."""

EXPERIMENT = {versions.EXPERIMENTAL_HEADER: 'true'}
"""The header that asks for experimental operations."""

_BELOW_7 = {
    '/services': '/os-services',
    '/quota-sets': '/os-quota-sets',
    '/quota-class-sets': '/os-quota-class-sets',
    '/availability-zones': '/os-availability-zone',
}


class View(typing.NamedTuple):
    """A view of response-fields.csv as one request shows it.

    `fetch_items` returns the items shown to a caller in a version;
    `personas` may see them, from the version `since`. `types` maps
    published types to those of this request.
    """

    title: str
    resource: str
    parts: tuple[str, ...]
    fetch_items: FetchItems
    personas: tuple[str, ...]
    since: int
    types: dict[str, str]


VIEWS: list[View] = []


def register_view(
    title: str,
    resource: str,
    *parts: str,
    personas: tuple[str, ...] = ALL_PERSONAS,
    since: int = 0,
    types: dict[str, str] | None = None,
) -> Callable[[FetchItems], FetchItems]:
    def add(fetch_items: FetchItems) -> FetchItems:
        VIEWS.append(
            View(title, resource, parts, fetch_items, personas, since, types or {})
        )
        return fetch_items

    return add


def register_get_view(
    title: str,
    key: str,
    path: str | Path,
    resource: str,
    *parts: str,
    **options: typing.Any,
) -> None:
    """Register a view that a GET shows below a key, as one item or a list."""

    @register_view(title, resource, *parts, **options)
    def fetch_items(sample, api, minor):
        found = get_at_version(sample, api, minor, path)[key]
        return found if isinstance(found, list) else [found]


def register_wrapper_view(
    title: str, path: str | Path, resource: str, *parts: str, **options: typing.Any
) -> None:
    """Register the top-level keys of the answer to a GET."""

    @register_view(title, resource, *parts, **options)
    def fetch_items(sample, api, minor):
        return [get_at_version(sample, api, minor, path)]


def get_at_version(sample, api, minor, path):
    """Return the answer to a GET of what the version calls this path.

    The header for experimental operations changes nothing for others.
    """
    return api.get(
        path_at_version(path if isinstance(path, str) else path(sample), minor),
        version=published_api.version_text(minor),
        **EXPERIMENT,
    )


def path_at_version(path: str, minor: int) -> str:
    """Return the path that the version uses."""
    if minor < 7:
        for new, old in _BELOW_7.items():
            if path.startswith(new):
                return old + path.removeprefix(new)
    return path
