"""Types of single values: texts, numbers, booleans and choices."""

import re
import typing

from manila_lite.api.schema.base import Check, Type, ValidationError

LARGEST_INTEGER = 2**31 - 1  # of the integer columns

_TRIMMED = r'(?:\S(?:[\s\S]*\S)?)?'


class _String(Type):
    def __init__(
        self, low: int, high: int, nullable: bool, pattern: str | None, description: str
    ):
        self._low, self._high, self._nullable = low, high, nullable
        self._pattern = pattern
        self._match = re.compile(pattern).fullmatch if pattern else None
        self._rule = description + (' or null' if nullable else '')

    def at(self, minor: int) -> Check:
        return self._check

    def _check(self, value: object) -> str | None:
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
        rule: dict = {'type': ['string', 'null'] if self._nullable else 'string'}
        if self._pattern:
            rule['pattern'] = f'^(?:{self._pattern})$'
        return rule | {'minLength': self._low, 'maxLength': self._high}


def string(
    max: int = 255,
    min: int = 0,
    *,
    nullable: bool = False,
    pattern: str | None = None,
    description: str | None = None,
) -> Type:
    """Text of `min` to `max` characters; errors quote `description`.

    The pattern must mean the same in ECMA-262, for the API description.
    """
    return _String(
        min,
        max,
        nullable,
        pattern,
        description or f'a string of {min} to {max} characters',
    )


def trimmed(max: int = 255, min: int = 0, *, nullable: bool = False) -> Type:
    """Text that identifies something: white space at its ends is refused.

    MariaDB ignores spaces at the end when it compares, the other databases
    do not, so that two texts could be one key or two.
    """
    return string(
        max,
        min,
        nullable=nullable,
        pattern=_TRIMMED,
        description=f'a string of {min} to {max} characters without white '
        'space at either end',
    )


class _OptionalId(Type):
    def __init__(self, id: Type):
        self._id = id

    def at(self, minor: int) -> Check:
        check = self._id.at(minor)
        return lambda value: None if value in (None, '') else check(value)

    def json_schema(self, minor: int) -> dict:
        return {'anyOf': [self._id.json_schema(minor), {'enum': [None, '']}]}


def optional_id(max: int = 255) -> Type:
    """An id that need not be given: null and "" are as if it were absent.

    Dashboards send every field of a form, those that are not filled in empty.
    """
    return _OptionalId(trimmed(max, 1))


class _Integer(Type):
    def __init__(self, low: int, high: int, nullable: bool):
        self._low, self._high, self._nullable = low, high, nullable

    def at(self, minor: int) -> Check:
        return self._check

    def _check(self, value: object) -> int | None:
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


def integer(min: int, max: int = LARGEST_INTEGER, *, nullable: bool = False) -> Type:
    """An integer, also sent as a string of digits."""
    return _Integer(min, max, nullable)


class _OneOf(Type):
    def __init__(self, choices: dict, rule: str):
        self._choices, self._rule = choices, rule

    def at(self, minor: int) -> Check:
        return self._check

    def _check(self, value: object) -> typing.Any:
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
        + ', '.join('null' if value is None else str(value) for value in values),
    )


def _words(*words: str) -> set[str]:
    return {
        variant for word in words for variant in (word, word.upper(), word.capitalize())
    }


TRUE_WORDS = _words('1', 't', 'true', 'on', 'y', 'yes')
FALSE_WORDS = _words('0', 'f', 'false', 'off', 'n', 'no')


BOOLEAN_WORD = {
    'type': 'string',
    'pattern': f'^({"|".join(sorted(TRUE_WORDS | FALSE_WORDS))})$',
}
"""The JSON Schema of words for booleans.

Generators of clients make one name of the words of an `enum` that differ only
in case.
"""


class _Boolean(_OneOf):
    def json_schema(self, minor: int) -> dict:
        return {
            'anyOf': [
                {'type': 'boolean'},
                {'type': 'integer', 'enum': [0, 1]},
                BOOLEAN_WORD,
            ]
        }


boolean: Type = _Boolean(
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
optional_uuid: Type = _OptionalId(uuid)
