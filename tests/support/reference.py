"""The published API as tables, read from outside this repository."""

import csv
import functools
import pathlib

from tests.support import requirements

FOLDER = pathlib.Path(__file__).resolve().parents[3] / 'shared' / 'reference'


def require_folder() -> pathlib.Path:
    """Return the folder of tables; skip without it, fail if CI is set."""
    if not FOLDER.is_dir():
        # Modules call this while they are imported, too.
        requirements.missing(
            'the reference tables are not beside this checkout',
            allow_module_level=True,
        )
    return FOLDER


@functools.cache
def _read(path: pathlib.Path) -> tuple[dict[str, str], ...]:
    with path.open(newline='', encoding='utf-8') as file:
        return tuple(csv.DictReader(file))


def table(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of one table, as dicts of strings."""
    return _read(require_folder() / name)


def notes() -> str:
    """Return the text of the rules that tables cannot express."""
    return (require_folder() / 'notes.md').read_text(encoding='utf-8')
