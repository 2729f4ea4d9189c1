"""The types of columns, by name; views do not say which table they show."""

import functools
import operator

from manila_lite.api.description import types
from manila_lite.db.queries import columns

_TEXT = types.nullable({'type': 'string'})
LABELS: dict[str, dict] = {
    # Those of services and of the log of recovery are numbers, as their views
    # say; work and migrations, which no view shows, have numbers, too.
    'id': {'type': 'string'},
    'progress': _TEXT,
    # The zone, share type and network of a row are read with it.
    'availability_zone': _TEXT,
    'share_type_name': _TEXT,
    'share_network_name': _TEXT,
    'zone': _TEXT,
    # Of the share of a snapshot.
    'share_size': {'type': 'integer'},
}
"""What queries label, and names that mean different things."""


def schema_of(name: str) -> dict | None:
    """Return the JSON Schema of the columns with a name, or None.

    It allows null if the column is nullable in any table.
    """
    if name in LABELS:
        return LABELS[name]
    kinds = columns.kinds_by_name().get(name)
    if kinds is None:
        return None
    ordered = sorted(kinds, key=lambda kind: (kind is type(None), str(kind)))
    return types.schema_of(functools.reduce(operator.or_, ordered))
