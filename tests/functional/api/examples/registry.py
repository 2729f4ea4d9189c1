"""A valid request for every tested operation.

An example prepares the resources it needs and returns the arguments of the
request. It is registered under the key of the operation, in the spelling of
the latest version.
"""

from collections.abc import Callable

from tests.functional.api import published_api
from tests.functional.api.samples.cloud import SampleCloud
from tests.functional.api.samples.requests import RequestArgs

Example = Callable[[SampleCloud], RequestArgs]
EXAMPLES: dict[str, Example] = {}

_LATEST = {
    '/os-share-manage': '/shares/manage',
    '/os-availability-zone': '/availability-zones',
    '/os-share-type-access': '/share_type_access',
}


def example(operation: published_api.Operation) -> Example:
    return EXAMPLES[latest_key(operation.key)]


def latest_key(key: str) -> str:
    """Return the key in the spelling of the latest version."""
    for old, new in _LATEST.items():
        key = key.replace(old, new)
    return key.replace(' os-', ' ').replace('/os-', '/')


def example_for(*keys: str) -> Callable[[Example], Example]:
    def add(function: Example) -> Example:
        for key in keys:
            assert key not in EXAMPLES, key
            EXAMPLES[key] = function
        return function

    return add
