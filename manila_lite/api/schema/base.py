"""The base of all types, and what a value that breaks a rule raises."""

import typing

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


def check_inside(name: str, check: Check, value: typing.Any) -> typing.Any:
    try:
        return check(value)
    except ValidationError as error:
        raise error.inside(name) from None
