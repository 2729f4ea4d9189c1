"""Filters: the keys of list queries, as rows with versions and audience.

What a key means depends on the resource: `Filters.values` returns them by
the name that the criteria of its query have.
"""

from collections.abc import Callable, Container, Mapping
import typing

from manila_lite import exception
from manila_lite.api import schema, versions, wsgi

Parser = Callable[[Mapping[str, str], str], typing.Any]

_number = schema.non_negative_int.at(0)


def text(query: Mapping[str, str], key: str) -> str:
    return query[key]


def non_empty(query: Mapping[str, str], key: str) -> str:
    """Return the value; raises InvalidInput if it is empty."""
    if query[key] == '':
        raise exception.InvalidInput(reason=f'{key} must not be empty')
    return query[key]


def number(query: Mapping[str, str], key: str) -> int:
    """Return the value as an integer from 0 on; raises InvalidInput."""
    try:
        return _number(query[key])
    except schema.ValidationError as error:
        raise exception.InvalidInput(reason=f'{key} {error.rule}') from None


class Filter:
    """A key of a query: its name in criteria, versions and audience.

    Keys outside their versions are ignored like unknown ones, and so are
    those with `admin_only` from others. A key with a policy is refused
    without it. For the API description, `words` are those that the key
    accepts, `form` is the JSON Schema of others, and `required` says that the
    handler refuses a query without it; other types follow from what `parse`
    returns.
    """

    __slots__ = (
        'admin_only',
        'form',
        'key',
        'name',
        'parse',
        'policy',
        'required',
        'window',
        'words',
    )

    def __init__(
        self,
        key: str,
        name: str | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
        parse: Parser = text,
        policy: str | None = None,
        admin_only: bool = False,
        words: typing.Iterable[str] = (),
        form: dict[str, typing.Any] | None = None,
        required: bool = False,
    ):
        self.key = key
        self.name = name or key
        self.window = versions.window(since, until)
        self.parse, self.policy, self.admin_only = parse, policy, admin_only
        self.words = tuple(words)
        self.form = form
        self.required = required


class Filters:
    """The filters of one list."""

    def __init__(self, rows: tuple[Filter, ...], skip_empty: bool):
        self.rows = rows
        self._skip_empty = skip_empty

    def values(self, req: wsgi.Request) -> dict[str, typing.Any]:
        """Return the values of the query; of two keys the later row counts.

        Raises PolicyNotAuthorized and what the parsers raise.
        """
        query = req.query
        found = {}
        for row in self.rows:
            if (
                row.key not in query
                or req.minor not in row.window
                or (row.admin_only and not req.ctx.is_admin)
                or (self._skip_empty and not query[row.key])
            ):
                continue
            if row.policy:
                req.ctx.authorize(row.policy)
            found[row.name] = row.parse(query, row.key)
        return found


def filters(*rows: Filter, skip_empty: bool = False) -> Filters:
    """Return these filters; with `skip_empty`, empty values are ignored."""
    return Filters(rows, skip_empty)


def exact(*keys: str, admin_only: Container[str] = ()) -> tuple[Filter, ...]:
    """Return the filters by keys that criteria know by the same names."""
    return tuple(Filter(key, admin_only=key in admin_only) for key in keys)
