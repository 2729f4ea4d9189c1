"""What an answer shows: rows of fields, and the functions made from them.

A view is a list of `Field` rows. For each version and role a function is
generated that fills one dict per row of data; nothing is decided while
rows are turned into answers.
"""

import datetime
import re
import typing

from manila_lite.api import versions

_AS_KEPT = '2026-08-01 12:30:00.000000'
_ATTRIBUTE = re.compile(r'\brow\.(\w+)')


class FieldValue(typing.NamedTuple):
    """How a field is found: an expression over `row` and `more`.

    A dollar sign in the expression stands for the constant.
    """

    expression: str
    constant: object = None


def attr(name: str) -> FieldValue:
    """The attribute of the row with this name."""
    if not name.isidentifier():
        raise ValueError(f'{name} names no attribute')
    return FieldValue(f'row.{name}')


def time_attr(name: str) -> FieldValue:
    """The time in this attribute; a field ending in `_at` has it anyway."""
    return FieldValue(f'$({attr(name).expression})', timestamp)


def const(value: object) -> FieldValue:
    """The same value for every row."""
    return FieldValue('$', value)


def fn(function: typing.Callable[..., object], *names: str) -> FieldValue:
    """What the function makes of these attributes, or of the whole row.

    Naming the attributes is faster in long lists.
    """
    given = ', '.join(attr(name).expression for name in names) or 'row'
    return FieldValue(f'$({given})', function)


def fn2(
    function: typing.Callable[[typing.Any, typing.Any], object],
) -> FieldValue:
    """What the function makes of the row and of `more`."""
    return FieldValue('$(row, more)', function)


def extra(name: str) -> FieldValue:
    """The same value for every row, known at the call: `more[name]`."""
    return FieldValue(f'more[{name!r}]')


def child(name: str, default: object = None, by: str = 'id') -> FieldValue:
    """What `more[name]` holds for the row, looked up by its `by`.

    Without an entry the default is shown, an empty object when none is
    given.
    """
    return FieldValue(
        f'more[{name!r}].get({attr(by).expression}, $)',
        {} if default is None else default,
    )


def timestamp(value: datetime.datetime | str | None) -> str | None:
    """The time as answers write it: UTC with microseconds, no zone."""
    if value is None:
        return None
    if isinstance(value, str):  # as SQLite keeps it
        if len(value) == len(_AS_KEPT):
            return value.replace(' ', 'T')
        value = datetime.datetime.fromisoformat(value)
    return value.isoformat(timespec='microseconds')


# Self and bookmark of the row; `more['links']` is a `links.Links`.
LINKS = FieldValue("more['links'](row.id)")


class Field:
    """One line of a view: a name, where it is found, who sees it when."""

    __slots__ = ('admin_only', 'name', 'value', 'window')

    def __init__(
        self,
        name: str,
        value: FieldValue | typing.Callable | None = None,
        since: str | None = None,
        until: str | None = None,
        admin_only: bool = False,
    ):
        if value is None:
            value = time_attr(name) if name.endswith('_at') else attr(name)
        self.name = name
        self.value = value if isinstance(value, FieldValue) else fn(value)
        self.window = versions.window(since, until)
        self.admin_only = admin_only


class View:
    """All fields of one way to show a resource."""

    def __init__(self, rows: typing.Sequence[Field]):
        self.rows = tuple(rows)
        self._refuse_overlaps()
        self._shown: dict[tuple[int, bool], _Shown] = {}

    def _refuse_overlaps(self) -> None:
        windows: dict[str, list[versions.Window]] = {}
        for field in self.rows:
            windows.setdefault(field.name, []).append(field.window)
        for name, found in windows.items():
            if versions.overlapping(found):
                raise ValueError(f'field {name} has two values in one version')

    def shown(self, minor: int, admin: bool) -> tuple[Field, ...]:
        """The fields that one role sees at one version."""
        return tuple(
            field
            for field in self.rows
            if minor in field.window and (admin or not field.admin_only)
        )

    def function(self, minor: int, admin: bool = False) -> typing.Callable:
        """The function (row, more=None) -> dict."""
        return self._functions(minor, admin).one

    def many(self, minor: int, admin: bool = False) -> typing.Callable:
        """The function (rows, more=None) -> list of dicts."""
        return self._functions(minor, admin).many

    def _functions(self, minor: int, admin: bool) -> '_Shown':
        found = self._shown.get((minor, admin))
        if found is None:
            found = self._shown[minor, admin] = _Shown(
                self.shown(minor, admin)
            )
        return found


class _Shown:
    """The functions of one version and role.

    They are made for the columns of the rows that come: a row is taken
    apart once, since to read a column by its name costs ten times as much
    as by its place, and that is still a call.
    """

    def __init__(self, fields: tuple[Field, ...]):
        self._fields = fields
        self._made: dict[tuple[str, ...] | None, tuple] = {}

    def one(self, row: typing.Any, more: typing.Any = None) -> dict:
        return self._for(row)[0](row, more)

    def many(
        self, rows: typing.Sequence, more: typing.Any = None
    ) -> list[dict]:
        return self._for(rows[0])[1](rows, more) if rows else []

    def _for(self, row: typing.Any) -> tuple:
        columns = getattr(row, '_fields', None)
        made = self._made.get(columns)
        if made is None:
            made = self._made[columns] = self._make(columns)
        return made

    def _make(self, columns: tuple[str, ...] | None) -> tuple:
        names = {'blank': dict.fromkeys(field.name for field in self._fields)}
        lines = []
        for number, field in enumerate(self._fields):
            expression, constant = field.value
            names[f'constant_{number}'] = constant
            expression = expression.replace('$', f'constant_{number}')
            if columns is not None:
                expression = _ATTRIBUTE.sub(
                    lambda found: _local(found[1], columns), expression
                )
            lines.append(f'shown[{field.name!r}] = {expression}')
        if columns is not None:
            taken = ', '.join(_local(name, columns) for name in columns)
            lines.insert(0, f'[{taken}] = row')
        exec(_MANY.format(lines='\n        '.join(lines)), names)
        many = names['many']
        return lambda row, more: many([row], more)[0], many


# A copy has its room already; a dict of that size would grow four times.
_MANY = """
def many(rows, more):
    found = []
    for row in rows:
        shown = blank.copy()
        {lines}
        found.append(shown)
    return found
"""


def _local(name: str, columns: tuple[str, ...]) -> str:
    """The local variable that holds the column of a row."""
    if name not in columns:
        raise LookupError(f'rows without a column {name} cannot be shown')
    return f'column_{columns.index(name)}'


def fields(*rows: Field) -> View:
    """The view of these rows; another view's rows may be among them."""
    return View(rows)
