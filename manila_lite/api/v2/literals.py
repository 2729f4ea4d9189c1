"""Objects in query strings, which published clients write as Python.

They send `extra_specs={'key': 'value'}`, the text of a dict.
"""

import ast
from collections.abc import Mapping

from manila_lite import exception

_LARGEST = 4096  # characters; well below what could exhaust the parser
MAX_KEYS = 20
"""Maximum number of keys; the cost of a filter grows with it."""


def parse(query: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the object in this key with text values; empty if missing.

    Raises InvalidInput if it is malformed or has too many keys.
    """
    text = query.get(name)
    if not text:
        return {}
    try:
        if len(text) > _LARGEST:
            raise ValueError
        found = ast.literal_eval(text)
        if type(found) is not dict:
            raise ValueError
        pairs = {str(key): str(value) for key, value in found.items()}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise exception.InvalidInput(
            reason=f"{name} must be an object such as {{'key': 'value'}} "
            f'of at most {_LARGEST} characters'
        ) from None
    if len(pairs) > MAX_KEYS:
        raise exception.InvalidInput(reason=f'{name} must have at most {MAX_KEYS} keys')
    return pairs


def parse_pairs(query: Mapping[str, str], name: str) -> dict[str, str]:
    """Like `parse`, but accept `key:value,key:value` as well.

    The official client sends this for replicas.
    """
    text = query.get(name) or ''
    pairs = [part.partition(':') for part in text.split(',')]
    if text.lstrip().startswith('{') or not all(
        key and colon for key, colon, _ in pairs
    ):
        return parse(query, name)
    return parse({name: str({key: value for key, _, value in pairs})}, name)


def parse_ids(query: Mapping[str, str], name: str) -> list[str]:
    """Return the ids of a list, such as `a,b` or `['a', 'b']`.

    Raises InvalidInput for an empty list and for one that is too long.
    """
    parts = query[name].strip(' []').split(',')
    ids = [part.strip(' \'"') for part in parts]
    if not all(ids) or len(ids) > MAX_KEYS:
        raise exception.InvalidInput(reason=f'{name} must have 1 to {MAX_KEYS} ids')
    return ids
