"""What all schemas are, and the fields of an object."""

import typing

from manila_lite.api import versions

Check = typing.Callable[[typing.Any], typing.Any]


class ValidationError(Exception):
    """A value breaks a rule; `Schema` turns it into InvalidInput."""

    def __init__(self, rule: str, *path: str):
        super().__init__(rule)
        self.rule = rule
        self.path = list(path)

    def inside(self, name: str) -> 'ValidationError':
        self.path.insert(0, name)
        return self


class Type:
    """A type that accepts any value; the base of all types."""

    alternative_name: str | None = None  # a second name of the field
    when_both: str = 'first'  # what to do if both names are sent

    def at(self, minor: int) -> Check:
        """Return the function that checks a value sent at a version."""
        return lambda value: value

    def outside(self, minor: int) -> str | None:
        """Return None if the field exists, else 'drop' or 'refuse'."""
        return None

    def json_schema(self, minor: int) -> dict:
        """Return the same rule as JSON Schema."""
        return {}


anything = Type()


def check_inside(name: str, check: Check, value: object) -> typing.Any:
    try:
        return check(value)
    except ValidationError as error:
        raise error.inside(name) from None


class _Wrapped(Type):
    """A type that wraps and extends another one."""

    def __init__(self, inner: Type):
        self._inner = inner
        self.alternative_name, self.when_both = (
            inner.alternative_name,
            inner.when_both,
        )

    def at(self, minor: int) -> Check:
        return self._inner.at(minor)

    def outside(self, minor: int) -> str | None:
        return self._inner.outside(minor)

    def json_schema(self, minor: int) -> dict:
        return self._inner.json_schema(minor)


class _Windowed(_Wrapped):
    def __init__(self, inner: Type, window: versions.Window, otherwise: str):
        super().__init__(inner)
        if otherwise not in ('drop', 'refuse'):
            raise ValueError(f'{otherwise} is neither drop nor refuse')
        self._window, self._otherwise = window, otherwise

    def outside(self, minor: int) -> str | None:
        if minor in self._window:
            return super().outside(minor)
        return self._otherwise


def since(version: str, inner: Type, below: str = 'drop') -> Type:
    """The type since a version; `below` it, drop or refuse the field."""
    return _Windowed(inner, versions.window(version), below)


def until(version: str, inner: Type, above: str = 'drop') -> Type:
    """The type until a version; `above` it, drop or refuse the field."""
    return _Windowed(inner, versions.window(None, version), above)


class _Alias(_Wrapped):
    def __init__(self, alternative_name: str, inner: Type, when_both: str):
        super().__init__(inner)
        if when_both not in ('first', 'refuse'):
            raise ValueError(f'{when_both} is neither first nor refuse')
        self.alternative_name, self.when_both = alternative_name, when_both


def alias(alternative_name: str, inner: Type, when_both: str = 'first') -> Type:
    """The type with a second field name.

    If a body has both, the value of the field's own name is used, or with
    `when_both='refuse'` the body is refused.
    """
    return _Alias(alternative_name, inner, when_both)
