"""The published API as tables: facts, a row each.

Tests name the facts of the release notes that they prove by a mark, which is
registered here.
"""

import csv
import functools
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'reference'


@functools.cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of one table, as dicts of strings."""
    with (FOLDER / name).open(newline='', encoding='utf-8') as file:
        return tuple(csv.DictReader(file))


def pytest_configure(config):
    config.addinivalue_line(
        'markers',
        'facts(*ids): fails if one of these facts of release-facts.csv does not hold',
    )
