"""What an answer shows: rows of fields, and the functions made from them.

A view is a list of `Field` rows. For each version and role a function is
generated that writes one dict literal per row of data; nothing is decided
while rows are turned into answers.
"""

import datetime
import typing

from manila_lite.api import versions


class Value(typing.NamedTuple):
    """How a field is found: an expression over `row` and `more`.

    A dollar sign in the expression stands for the constant.
    """

    expression: str
    constant: object = None


def attr(name: str) -> Value:
    """The attribute of the row with this name."""
    if not name.isidentifier():
        raise ValueError(f'{name} names no attribute')
    return Value(f'row.{name}')


def when(name: str) -> Value:
    """The time in this attribute; a field ending in `_at` has it anyway."""
    return Value(f'$({attr(name).expression})', timestamp)


def const(value: object) -> Value:
    """The same value for every row."""
    return Value('$', value)


def fn(function: typing.Callable[[typing.Any], object]) -> Value:
    """What the function makes of the row."""
    return Value('$(row)', function)


def fn2(function: typing.Callable[[typing.Any, typing.Any], object]
        ) -> Value:
    """What the function makes of the row and of `more`."""
    return Value('$(row, more)', function)


def extra(name: str) -> Value:
    """The same value for every row, known at the call: `more[name]`."""
    return Value(f'more[{name!r}]')


def child(name: str, default: object = None, by: str = 'id') -> Value:
    """What `more[name]` holds for the row, looked up by its `by`.

    Without an entry the default is shown, an empty object when none is
    given.
    """
    return Value(f'more[{name!r}].get({attr(by).expression}, $)',
                 {} if default is None else default)


def timestamp(value: datetime.datetime | str | None) -> str | None:
    """The time as answers write it: UTC with microseconds, no zone."""
    if value is None:
        return None
    if type(value) is str:  # as SQLite keeps it
        value = datetime.datetime.fromisoformat(value)
    return value.isoformat(timespec='microseconds')


# Self and bookmark of the row; `more['links']` is a `links.Links`.
LINKS = Value("more['links'](row.id)")


class Field:
    """One line of a view: a name, where it is found, who sees it when."""

    __slots__ = ('admin_only', 'name', 'value', 'window')

    def __init__(self, name: str,
                 value: Value | typing.Callable | None = None,
                 since: str | None = None, until: str | None = None,
                 admin_only: bool = False):
        if value is None:
            value = when(name) if name.endswith('_at') else attr(name)
        self.name = name
        self.value = value if isinstance(value, Value) else fn(value)
        self.window = versions.window(since, until)
        self.admin_only = admin_only


class View:
    """All fields of one way to show a resource."""

    def __init__(self, rows: typing.Sequence[Field]):
        self.rows = tuple(rows)
        self._refuse_overlaps()
        self._made: dict[tuple[bool, int, bool], typing.Callable] = {}

    def _refuse_overlaps(self) -> None:
        windows: dict[str, list[versions.Window]] = {}
        for field in self.rows:
            windows.setdefault(field.name, []).append(field.window)
        for name, found in windows.items():
            if versions.overlapping(found):
                raise ValueError(f'field {name} has two values in one '
                                 'version')

    def shown(self, minor: int, admin: bool) -> tuple[Field, ...]:
        """The fields that one role sees at one version."""
        return tuple(field for field in self.rows if minor in field.window
                     and (admin or not field.admin_only))

    def function(self, minor: int, admin: bool = False) -> typing.Callable:
        """The function (row, more=None) -> dict."""
        return (self._made.get((False, minor, admin))
                or self._make(False, minor, admin))

    def many(self, minor: int, admin: bool = False) -> typing.Callable:
        """The function (rows, more=None) -> list of dicts."""
        return (self._made.get((True, minor, admin))
                or self._make(True, minor, admin))

    def _make(self, many: bool, minor: int, admin: bool) -> typing.Callable:
        constants: dict[str, object] = {}
        pairs = []
        for number, field in enumerate(self.shown(minor, admin)):
            expression, constant = field.value
            name = f'constant_{number}'
            constants[name] = constant
            pairs.append(f'{field.name!r}: '
                         + expression.replace('$', name))
        literal = '{' + ', '.join(pairs) + '}'
        source = (f'lambda rows, more=None: [{literal} for row in rows]'
                  if many else f'lambda row, more=None: {literal}')
        made = eval(compile(source, '<view>', 'eval'), constants)
        self._made[many, minor, admin] = made
        return made


def fields(*rows: Field) -> View:
    """The view of these rows; another view's rows may be among them."""
    return View(rows)
