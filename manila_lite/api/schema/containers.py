"""Types of lists and objects, and the schemas of bodies made of them."""

import typing

from manila_lite import exception
from manila_lite.api.schema.base import Check, Type, ValidationError, check_inside
from manila_lite.api.schema.scalars import string


class _Array(Type):
    def __init__(self, of: Type, low: int, high: int):
        self._of, self._low, self._high = of, low, high

    def at(self, minor: int) -> Check:
        check = self._of.at(minor)

        def check_all(value: object) -> list:
            if type(value) is not list or not self._low <= len(value) <= self._high:
                raise ValidationError(
                    f'must be a list of {self._low} to {self._high} items'
                )
            return [
                check_inside(str(place), check, item)
                for place, item in enumerate(value)
            ]

        return check_all

    def json_schema(self, minor: int) -> dict:
        return {
            'type': 'array',
            'items': self._of.json_schema(minor),
            'minItems': self._low,
            'maxItems': self._high,
        }


def array(of: Type, max: int = 1000, min: int = 0) -> Type:
    """A list of items of one type."""
    return _Array(of, min, max)


_KEY = string(
    255,
    1,
    pattern=r'(?!(?:[\s\S]*/)?\.\.?(?:/[\s\S]*)?$)\S(?:[\s\S]*\S)?',
    description='a string of 1 to 255 characters without white space at '
    'either end, and without . and .. as a part of a path',
)


class _Mapping(Type):
    def __init__(self, key: Type, of: Type, nullable: bool):
        self._key, self._of, self._nullable = key, of, nullable

    def at(self, minor: int) -> Check:
        check_key, check = self._key.at(minor), self._of.at(minor)

        def check_all(value: object) -> dict | None:
            if value is None and self._nullable:
                return None
            if type(value) is not dict:
                raise ValidationError('must be an object')
            return {
                check_inside(key[:40], check_key, key): check_inside(
                    key[:40], check, item
                )
                for key, item in value.items()
            }

        return check_all

    def json_schema(self, minor: int) -> dict:
        return {
            'type': ['object', 'null'] if self._nullable else 'object',
            'propertyNames': self._key.json_schema(minor),
            'additionalProperties': self._of.json_schema(minor),
        }


def mapping(of: Type, key: Type | None = None, *, nullable: bool = False) -> Type:
    """An object with keys of 1 to 255 characters, or of type `key`.

    Without a type, keys have no white space at either end, and can be
    parts of a URL: clients resolve . and .. in it.
    """
    return _Mapping(key or _KEY, of, nullable)


class ObjectType(Type):
    def __init__(
        self,
        required: typing.Iterable[str],
        props: dict[str, Type],
        extra: str,
        nullable: bool = False,
    ):
        self._required, self._props = tuple(required), props
        self._extra, self._nullable = extra, nullable
        if extra not in ('allow', 'refuse', 'drop'):
            raise ValueError(f'{extra} is none of allow, refuse, drop')
        for name in self._required:
            if name not in props:
                raise ValueError(f'{name} is required but not described')

    def at(self, minor: int) -> Check:
        accepted, unavailable = self._fields(minor)
        required = [name for name in self._required if name in accepted]

        def check(value: object) -> dict | None:
            if value is None and self._nullable:
                return None
            if type(value) is not dict:
                raise ValidationError('must be an object')
            args = {}
            for key, item in value.items():
                field = accepted.get(key)
                if field is None:
                    disposition = unavailable.get(key, self._extra)
                    if disposition == 'refuse':
                        raise ValidationError('is not accepted here', key[:40])
                    if disposition == 'allow':
                        args[key] = item
                    continue
                name, check_field, when_both = field
                if name != key and name in value:
                    if when_both == 'refuse':
                        raise ValidationError(f'excludes {name}', key)
                    continue
                try:
                    args[name] = check_field(item)
                except ValidationError as error:
                    raise error.inside(key) from None
            for name in required:
                if name not in args:
                    raise ValidationError('is required', name)
            return args

        return check

    def _fields(
        self, minor: int
    ) -> tuple[dict[str, tuple[str, Check, str]], dict[str, str]]:
        """Return accepted names of a version and dispositions of others."""
        accepted: dict[str, tuple[str, Check, str]] = {}
        unavailable: dict[str, str] = {}
        for name, prop in self._props.items():
            disposition = prop.outside(minor)
            check = prop.at(minor)
            for key in filter(None, (name, prop.alternative_name)):
                if disposition is None:
                    accepted[key] = (name, check, prop.when_both)
                else:
                    unavailable[key] = disposition
        return accepted, {
            key: disposition
            for key, disposition in unavailable.items()
            if key not in accepted
        }

    def json_schema(self, minor: int) -> dict:
        accepted, unavailable = self._fields(minor)
        properties: dict = {
            key: self._props[name].json_schema(minor)
            for key, (name, _, _) in accepted.items()
        }
        properties |= {
            key: False
            for key, disposition in unavailable.items()
            if disposition == 'refuse'
        }
        properties |= {
            key: True
            for key, disposition in unavailable.items()
            if disposition == 'drop'
        }
        rule: dict = {'type': 'object', 'properties': properties}
        if self._extra == 'refuse':
            rule['additionalProperties'] = False
        requirements: list[dict] = []
        for name in self._required:
            if name in accepted:
                alternative_name = self._props[name].alternative_name
                requirements.append(
                    {'required': [name]}
                    if alternative_name is None
                    else {
                        'anyOf': [
                            {'required': [name]},
                            {'required': [alternative_name]},
                        ]
                    }
                )
        requirements += [
            {'not': {'required': [name, prop.alternative_name]}}
            for name, prop in self._props.items()
            if name in accepted and prop.when_both == 'refuse'
        ]
        if requirements:
            rule['allOf'] = requirements
        return {'anyOf': [rule, {'type': 'null'}]} if self._nullable else rule


def obj(
    required: typing.Iterable[str] = (),
    *,
    extra: str = 'drop',
    nullable: bool = False,
    **props: Type,
) -> Type:
    """An object inside a body."""
    return ObjectType(required, props, extra, nullable)


metadata = mapping(string(1023, 1))


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

    def arguments(self, body: object, minor: int) -> typing.Any:
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

    def check(self, value: object, minor: int, *path: str) -> typing.Any:
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


STATUS = schema(['status'], status=string(255, 1))
"""The body of the actions that set a status."""
