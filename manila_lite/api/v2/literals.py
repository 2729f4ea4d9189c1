"""Objects in query strings, which published clients write as Python.

They send `extra_specs={'key': 'value'}`, the text of a dict.
"""

import ast
from collections.abc import Mapping

from manila_lite import exception

_LARGEST = 4096  # characters; well below what could exhaust the parser


def parse(query: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the object in this key with text values; empty if missing."""
    text = query.get(name)
    if not text:
        return {}
    try:
        if len(text) > _LARGEST:
            raise ValueError
        found = ast.literal_eval(text)
        if type(found) is not dict:
            raise ValueError
        return {str(key): str(value) for key, value in found.items()}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise exception.InvalidInput(
            reason=f"{name} must be an object such as {{'key': 'value'}} "
            f'of at most {_LARGEST} characters'
        ) from None
