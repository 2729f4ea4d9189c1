"""The commands of `manila-lite-manage example`: files to start from.

They are those of `etc/manila_lite` in the sources.
"""

import argparse
from importlib import resources
import pathlib
import re
import sys

from manila_lite import exception
from manila_lite.cmd import console

_LIST = 'README.md'


def list_all(args: argparse.Namespace) -> None:
    """list the example files"""
    console.print_table(('name', 'content'), _described().items())


def show(args: argparse.Namespace) -> None:
    """print an example file"""
    sys.stdout.write(_find(args.name).read_text())


def add_to(nouns: console.Commands) -> None:
    """Add the commands and their arguments."""
    parsers = console.add(
        nouns,
        'example',
        'files to start from: configuration, units, alerts',
        list=list_all,
        show=show,
    )
    parsers['show'].add_argument(
        'name', metavar='NAME', help='name, as shown by "example list"'
    )


def _folder() -> pathlib.Path:
    return pathlib.Path(str(resources.files('manila_lite'))) / 'examples'


def _described() -> dict[str, str]:
    """Return a few words about each file by its name, with its folders.

    In a checkout the folder has other files as well.
    """
    folder = _folder()
    rows = re.findall(
        r'^\| `(.+)` \| (.+) \|$', (folder / _LIST).read_text(), re.MULTILINE
    )
    found = {name: words for name, words in rows if (folder / name).is_file()}
    for path in folder.glob('systemd/*.service'):
        unit = path.read_text()
        words = re.findall('^Description=(.+)$', unit, re.MULTILINE)
        found[str(path.relative_to(folder))] = words[0]
    return dict(sorted(found.items()))


def _find(name: str) -> pathlib.Path:
    """Return the file with this name; its folders may be left out."""
    for known in _described():
        if name in (known, pathlib.Path(known).name):
            return _folder() / known
    raise exception.ResourceNotFound(resource='Example', id=name)
