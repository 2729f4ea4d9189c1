"""Schemas of whole bodies."""

import typing

from manila_lite import exception
from manila_lite.api.schema.base import Check, Type, ValidationError
from manila_lite.api.schema.containers import ObjectType


class Schema:
    """A body: its required and optional fields, version by version.

    With a wrapper, the body is `{wrapper: {...}}`; without the wrapper the
    response has the code `missing`. The wrapper of an action is its name and
    is not given here. If no field is required, `null` is an empty object.
    `codes` are those of responses to bodies that are refused.
    """

    def __init__(
        self, inside: Type, wrapper: str | None, missing: int, optional: bool = False
    ):
        if missing not in (400, 422):
            raise ValueError('a missing wrapper answers 400 or 422')
        self._inside = inside
        self._optional = optional
        self._wrapper = wrapper
        self._missing = missing
        self.codes = {400, missing} if wrapper else {400}
        self._checks: dict[int, Check] = {}

    def arguments(self, body: typing.Any, minor: int) -> typing.Any:
        """Return the arguments in a whole body; raises Invalid."""
        if type(body) is not dict:
            raise exception.MalformedRequestBody()
        if self._wrapper is None:
            return self.check(body, minor)
        if self._wrapper not in body:
            if self._missing == 422:
                raise exception.MissingElement(element=self._wrapper)
            raise exception.InvalidInput(reason=f'{self._wrapper} is required')
        return self.check(body[self._wrapper], minor, self._wrapper)

    def check(self, value: typing.Any, minor: int, *path: str) -> typing.Any:
        """Return the arguments in the value of an action or a wrapper."""
        check = self._checks.get(minor)
        if check is None:
            check = self._checks[minor] = self._inside.at(minor)
        if value is None and self._optional:
            value = {}
        try:
            return check(value)
        except ValidationError as error:
            where = '.'.join([*path, *error.path]) or 'the body'
            raise exception.InvalidInput(reason=f'{where} {error.rule}') from None

    def json_schema(self, minor: int) -> dict:
        """Return the JSON Schema (2020-12) of the body at a version."""
        inside = self._inside.json_schema(minor)
        if self._optional:
            inside = {'anyOf': [inside, {'type': 'null'}]}
        if self._wrapper is None:
            return inside
        return {
            'type': 'object',
            'required': [self._wrapper],
            'properties': {self._wrapper: inside},
        }


def schema(
    required: typing.Iterable[str] = (),
    *,
    wrapper: str | None = None,
    missing: int = 422,
    extra: str = 'drop',
    **props: Type,
) -> Schema:
    """A body that is an object, with its required names and its fields.

    Unknown fields are dropped, or with `extra` refused or allowed.
    """
    return Schema(
        ObjectType(required, props, extra), wrapper, missing, optional=not required
    )


def body_of(inside: Type, *, wrapper: str | None = None, missing: int = 422) -> Schema:
    """A body that is described by one type, such as `metadata`."""
    return Schema(inside, wrapper, missing)
