"""The designs, read from outside this repository: examples of arguments."""

import re
import typing

from tests.support import reference

FOLDER = 'specs'

_METHOD = re.compile(r'^(\w+)\(context, ')
_PARAMETER = re.compile(r'^\W*(\w+) – ')
_KEY = re.compile(r"^[{\s]*'(\w+)'?\s*[:=]\s*(.*)$")


class Example(typing.NamedTuple):
    """An example of a parameter; `fields` are texts or further fields."""

    method: str
    parameter: str
    fields: dict[str, typing.Any]


def examples(design: str) -> list[Example]:
    """Return the examples of dictionaries, or of lists of them."""
    folder = reference.require_folder().parent / FOLDER
    found: list[Example] = []
    method = parameter = ''
    depth: list[dict[str, typing.Any]] = []
    for line in (folder / design).read_text(encoding='utf-8').splitlines():
        if match := _METHOD.match(line):
            method, parameter = match[1], ''
        elif match := _PARAMETER.match(line):
            parameter = match[1]
        elif line.startswith('Returns'):
            parameter = ''
        elif method and parameter:
            fields = _read(line, depth)
            if fields:
                found.append(Example(method, parameter, fields))
    return found


def _read(
    line: str, depth: list[dict[str, typing.Any]]
) -> dict[str, typing.Any] | None:
    """Read a line of an example; return the fields if it is the last one.

    `depth` are the dictionaries that are not closed yet.
    """
    match = _KEY.match(line)
    inner: dict[str, typing.Any] = {}
    if match:
        text = match[2].rstrip(', ')
        target = depth[-1] if depth else inner
        target[match[1]] = inner if text == '{' else text
    if line.strip().startswith('{') or (match and match[2].startswith('{')):
        depth.append(inner)
    if line.strip().startswith('}') and depth:
        fields = depth.pop()
        return None if depth else fields
    return None
