"""The published API as tables: facts, a row each."""

import csv
import functools
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'reference'


@functools.cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of one table, as dicts of strings."""
    with (FOLDER / name).open(newline='', encoding='utf-8') as file:
        return tuple(csv.DictReader(file))
