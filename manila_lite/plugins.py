"""Classes that are found by the name of an entry point."""

import functools
from importlib import metadata
import typing

from stevedore import driver, exception as stevedore_exc


class UnusablePlugin(Exception):
    """There is no such entry point, or it cannot be loaded."""


@functools.cache  # each back end loads the same ones
def load(namespace: str, name: str) -> typing.Any:
    """Return what an entry point names; raise UnusablePlugin."""
    try:
        return driver.DriverManager(
            namespace, name, on_missing_entrypoints_callback=None
        ).driver
    except stevedore_exc.NoMatches:
        known = ', '.join(names(namespace)) or 'none'
        raise UnusablePlugin(f'known are {known}') from None
    except (stevedore_exc.MultipleMatches, ImportError, AttributeError) as error:
        raise UnusablePlugin(str(error)) from error


def names(namespace: str) -> list[str]:
    """Return the names of the installed entry points, sorted."""
    return sorted(metadata.entry_points(group=namespace).names)
