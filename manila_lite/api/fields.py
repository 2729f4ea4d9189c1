"""Views: the fields of a response, and functions generated from them.

A view is a list of `Field` rows. For each version and role a function is
generated that fills one dict per row of data, so that nothing has to be
decided per row.
"""

import datetime
import re
import typing

from manila_lite.api import versions
from manila_lite.api.answers import Shape

_SQLITE_FORM = '2026-08-01 12:30:00.000000'
_ATTRIBUTE = re.compile(r'\brow\.(\w+)')


class FieldValue(typing.NamedTuple):
    """The value of a field: an expression over `row` and `more`.

    A dollar sign in the expression stands for the constant.
    """

    expression: str
    constant: object = None


def attr(name: str) -> FieldValue:
    """The attribute of the row with this name."""
    if not name.isidentifier():
        raise ValueError(f'{name} is not an attribute name')
    return FieldValue(f'row.{name}')


def time_attr(name: str) -> FieldValue:
    """The time in this attribute; the default for names ending in `_at`."""
    return FieldValue(f'$({attr(name).expression})', timestamp)


def const(value: object) -> FieldValue:
    """The same value for every row."""
    return FieldValue('$', value)


def fn(function: typing.Callable[..., object], *names: str) -> FieldValue:
    """The result of the function for these attributes, or for the row.

    Naming the attributes is faster in long lists.
    """
    args = ', '.join(attr(name).expression for name in names) or 'row'
    return FieldValue(f'$({args})', function)


def fn2(function: typing.Callable[[typing.Any, typing.Any], object]) -> FieldValue:
    """The result of the function for the row and `more`."""
    return FieldValue('$(row, more)', function)


def extra(name: str) -> FieldValue:
    """The same value for every row, passed in the call: `more[name]`."""
    return FieldValue(f'more[{name!r}]')


def child(name: str, default: object = None, by: str = 'id') -> FieldValue:
    """The entry of `more[name]` for the row, looked up by its `by`.

    Without an entry the value is `default`, or else an empty object.
    """
    return FieldValue(
        f'more[{name!r}].get({attr(by).expression}, $)',
        {} if default is None else default,
    )


def timestamp(value: datetime.datetime | str | None) -> str | None:
    """Return the time as in responses: UTC with microseconds, no zone."""
    if value is None:
        return None
    if isinstance(value, str):  # as SQLite stores it
        if len(value) == len(_SQLITE_FORM):
            return value.replace(' ', 'T')
        value = datetime.datetime.fromisoformat(value)
    return value.isoformat(timespec='microseconds')


# Links self and bookmark of the row; `more['links']` is a `links.Links`.
LINKS = FieldValue("more['links'](row.id)")


class Field:
    """A field of a view: its name, value, versions and audience.

    The API description derives its type from the value: the column, or the
    type that the function returns. `shape` is for values that do not say.
    """

    __slots__ = ('admin_only', 'name', 'shape', 'value', 'window')

    def __init__(
        self,
        name: str,
        value: FieldValue | typing.Callable | None = None,
        since: str | None = None,
        until: str | None = None,
        admin_only: bool = False,
        shape: Shape = None,
    ):
        if value is None:
            value = time_attr(name) if name.endswith('_at') else attr(name)
        self.name = name
        self.value = value if isinstance(value, FieldValue) else fn(value)
        self.window = versions.window(since, until)
        self.admin_only = admin_only
        self.shape = shape


class View:
    """All fields of one representation of a resource."""

    def __init__(self, rows: typing.Sequence[Field]):
        self.rows = tuple(rows)
        self._refuse_overlaps()
        self._by_audience: dict[tuple[int, bool], _ViewFunctions] = {}

    def _refuse_overlaps(self) -> None:
        windows: dict[str, list[versions.Window]] = {}
        for field in self.rows:
            windows.setdefault(field.name, []).append(field.window)
        for name, of_name in windows.items():
            if versions.overlapping(of_name):
                raise ValueError(f'field {name} has two values in one version')

    def visible_fields(self, minor: int, admin: bool) -> tuple[Field, ...]:
        """Return the fields that one role sees at one version."""
        return tuple(
            field
            for field in self.rows
            if minor in field.window and (admin or not field.admin_only)
        )

    def function(self, minor: int, admin: bool | None = False) -> typing.Callable:
        """Return the function (row, more=None) -> dict."""
        return self._functions(minor, admin).show

    def many(self, minor: int, admin: bool | None = False) -> typing.Callable:
        """Return the function (rows, more=None) -> list of dicts."""
        return self._functions(minor, admin).many

    def _functions(self, minor: int, admin: bool | None) -> '_ViewFunctions':
        admin = bool(admin)
        found = self._by_audience.get((minor, admin))
        if found is None:
            found = self._by_audience[minor, admin] = _ViewFunctions(
                self.visible_fields(minor, admin)
            )
        return found


class _ViewFunctions:
    """The functions of a view for one version and role.

    They are generated for the columns of the given rows. A row is unpacked
    once, because reading a column by name takes ten times as long as by
    position, and that is still a call.
    """

    def __init__(self, fields: tuple[Field, ...]):
        self._fields = fields
        self._compiled: dict[tuple[str, ...] | None, tuple] = {}

    def show(self, row: object, more: object = None) -> dict:
        return self._for(row)[0](row, more)

    def many(self, rows: typing.Sequence, more: object = None) -> list[dict]:
        return self._for(rows[0])[1](rows, more) if rows else []

    def _for(self, row: object) -> tuple:
        columns = getattr(row, '_fields', None)
        compiled = self._compiled.get(columns)
        if compiled is None:
            compiled = self._compiled[columns] = self._compile(columns)
        return compiled

    def _compile(self, columns: tuple[str, ...] | None) -> tuple:
        names: dict[str, typing.Any] = {
            'blank': dict.fromkeys(field.name for field in self._fields)
        }
        lines = []
        for number, field in enumerate(self._fields):
            expression, constant = field.value
            names[f'constant_{number}'] = constant
            expression = expression.replace('$', f'constant_{number}')
            if columns is not None:
                expression = _ATTRIBUTE.sub(
                    lambda found: _local(found[1], columns), expression
                )
            lines.append(f'item[{field.name!r}] = {expression}')
        if columns is not None:
            variables = ', '.join(_local(name, columns) for name in columns)
            lines.insert(0, f'[{variables}] = row')
        exec(_MANY.format(lines='\n        '.join(lines)), names)
        many = names['many']
        return lambda row, more: many([row], more)[0], many


# A copy is allocated at its full size; a new dict would grow four times.
_MANY = """
def many(rows, more):
    items = []
    for row in rows:
        item = blank.copy()
        {lines}
        items.append(item)
    return items
"""


def _local(name: str, columns: tuple[str, ...]) -> str:
    """Return the local variable that holds the column of a row."""
    if name not in columns:
        raise LookupError(f'rows without a column {name} cannot be shown')
    return f'column_{columns.index(name)}'


def fields(*rows: Field) -> View:
    """Return a view of these rows, possibly with rows of other views."""
    return View(rows)
