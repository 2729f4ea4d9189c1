"""Schemas of request bodies, with fast checks and a JSON Schema export.

A schema consists of types. For each version, a type gives a function that
converts the value sent to the value that handlers use: `'10'` becomes 10,
`'true'` becomes True. An error names the field and the rule, never the value,
which may be a secret.
"""

import re
import typing

from manila_lite import exception
from manila_lite.api import versions

Check = typing.Callable[[typing.Any], typing.Any]

LARGEST_INTEGER = 2**31 - 1  # of the integer columns


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


class _String(Type):
    def __init__(
        self,
        low: int,
        high: int,
        nullable: bool,
        pattern: str | None,
        description: str,
    ):
        self._low, self._high, self._nullable = low, high, nullable
        self._pattern = pattern
        self._match = re.compile(pattern).fullmatch if pattern else None
        self._rule = description + (' or null' if nullable else '')

    def at(self, minor: int) -> Check:
        return self._check

    def _check(self, value: typing.Any) -> str | None:
        if value is None and self._nullable:
            return None
        if (
            type(value) is not str
            or not self._low <= len(value) <= self._high
            or (self._match and not self._match(value))
        ):
            raise ValidationError(f'must be {self._rule}')
        return value

    def json_schema(self, minor: int) -> dict:
        rule: dict = {
            'type': ['string', 'null'] if self._nullable else 'string'
        }
        if self._pattern:
            return rule | {'pattern': f'^(?:{self._pattern})$'}
        return rule | {'minLength': self._low, 'maxLength': self._high}


def string(
    max: int = 255,
    min: int = 0,
    *,
    nullable: bool = False,
    pattern: str | None = None,
    description: str | None = None,
) -> Type:
    """Text of `min` to `max` characters; errors quote `description`."""
    return _String(
        min,
        max,
        nullable,
        pattern,
        description or f'a string of {min} to {max} characters',
    )


class _Integer(Type):
    def __init__(self, low: int, high: int, nullable: bool):
        self._low, self._high, self._nullable = low, high, nullable

    def at(self, minor: int) -> Check:
        return self._check

    def _check(self, value: typing.Any) -> int | None:
        if value is None and self._nullable:
            return None
        number = value
        if type(value) is str and len(value) <= 20:
            digits = value[1:] if value.startswith('-') else value
            if digits.isascii() and digits.isdecimal():
                number = int(value)
        if type(number) is not int or not self._low <= number <= self._high:
            raise ValidationError(
                f'must be an integer from {self._low} to {self._high}'
            )
        return number

    def json_schema(self, minor: int) -> dict:
        choices: list[dict] = [
            {'type': 'integer', 'minimum': self._low, 'maximum': self._high},
            {'type': 'string', 'pattern': '^-?[0-9]+$', 'maxLength': 20},
        ]
        if self._nullable:
            choices.append({'type': 'null'})
        return {'anyOf': choices}


def integer(
    min: int, max: int = LARGEST_INTEGER, *, nullable: bool = False
) -> Type:
    """An integer, also sent as a string of digits."""
    return _Integer(min, max, nullable)


class _OneOf(Type):
    def __init__(self, choices: dict, rule: str):
        self._choices, self._rule = choices, rule

    def at(self, minor: int) -> Check:
        return self._check

    def _check(self, value: typing.Any) -> typing.Any:
        # Lists are not hashable, and 1.0 == True == 1.
        if type(value) in (str, int, bool, type(None)):
            chosen = self._choices.get((type(value), value), self)
            if chosen is not self:
                return chosen
        raise ValidationError(f'must be {self._rule}')

    def json_schema(self, minor: int) -> dict:
        return {'enum': [value for _, value in self._choices]}


def one_of(*values: str | int | bool | None) -> Type:
    """One of the given values."""
    return _OneOf(
        {(type(value), value): value for value in values},
        'one of: '
        + ', '.join(
            'null' if value is None else str(value) for value in values
        ),
    )


def _words(*words: str) -> set[str]:
    return {
        variant
        for word in words
        for variant in (word, word.upper(), word.capitalize())
    }


TRUE_WORDS = _words('1', 't', 'true', 'on', 'y', 'yes')
FALSE_WORDS = _words('0', 'f', 'false', 'off', 'n', 'no')


class _Array(Type):
    def __init__(self, of: Type, low: int, high: int):
        self._of, self._low, self._high = of, low, high

    def at(self, minor: int) -> Check:
        check = self._of.at(minor)

        def check_all(value: typing.Any) -> list:
            if (
                type(value) is not list
                or not self._low <= len(value) <= self._high
            ):
                raise ValidationError(
                    f'must be a list of {self._low} to {self._high} items'
                )
            return [
                _inside(str(place), check, item)
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


class _Mapping(Type):
    def __init__(self, key: Type, of: Type, nullable: bool):
        self._key, self._of, self._nullable = key, of, nullable

    def at(self, minor: int) -> Check:
        check_key, check = self._key.at(minor), self._of.at(minor)

        def check_all(value: typing.Any) -> dict | None:
            if value is None and self._nullable:
                return None
            if type(value) is not dict:
                raise ValidationError('must be an object')
            return {
                _inside(key[:40], check_key, key): _inside(
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


def _inside(name: str, check: Check, value: typing.Any) -> typing.Any:
    try:
        return check(value)
    except ValidationError as error:
        raise error.inside(name) from None


def mapping(
    of: Type, key: Type | None = None, *, nullable: bool = False
) -> Type:
    """An object with any keys of 1 to 255 characters, or of type `key`."""
    return _Mapping(key or string(255, 1), of, nullable)


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


def alias(
    alternative_name: str, inner: Type, when_both: str = 'first'
) -> Type:
    """The type with a second field name.

    If a body has both, the value of the field's own name is used, or with
    `when_both='refuse'` the body is refused.
    """
    return _Alias(alternative_name, inner, when_both)


class _Object(Type):
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

        def check(value: typing.Any) -> dict | None:
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
    return _Object(required, props, extra, nullable)


anything = Type()
boolean: Type = _OneOf(
    {(bool, True): True, (bool, False): False, (int, 1): True, (int, 0): False}
    | {(str, word): True for word in sorted(TRUE_WORDS)}
    | {(str, word): False for word in sorted(FALSE_WORDS)},
    'a boolean',
)
positive_int = integer(1)
non_negative_int = integer(0)
uuid = string(
    36,
    32,
    description='a UUID',
    pattern=(
        '[0-9a-fA-F]{8}(-?)[0-9a-fA-F]{4}(-?)[0-9a-fA-F]{4}(-?)[0-9a-fA-F]{4}'
        '(-?)[0-9a-fA-F]{12}'
    ),
)
metadata = mapping(string(1023, 1))


class Schema:
    """A body: its required and optional fields, version by version.

    With a wrapper, the body is `{wrapper: {...}}`; without the wrapper the
    response has the code `missing`. The wrapper of an action is its name and
    is not given here. If no field is required, `null` is an empty object.
    """

    def __init__(
        self,
        inside: Type,
        wrapper: str | None,
        missing: int,
        optional: bool = False,
    ):
        if missing not in (400, 422):
            raise ValueError('a missing wrapper answers 400 or 422')
        self._inside = inside
        self._optional = optional
        self._wrapper = wrapper
        self._missing = missing
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
            raise exception.InvalidInput(
                reason=f'{where} {error.rule}'
            ) from None

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
        _Object(required, props, extra),
        wrapper,
        missing,
        optional=not required,
    )


def body_of(
    inside: Type, *, wrapper: str | None = None, missing: int = 422
) -> Schema:
    """A body that is described by one type, such as `metadata`."""
    return Schema(inside, wrapper, missing)
