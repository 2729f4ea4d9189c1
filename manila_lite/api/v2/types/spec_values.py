"""Keys and values of the specs of types."""

import re
import typing

from manila_lite.api import schema, versions
from manila_lite.api.schema import ValidationError

TEXT = schema.string(255, 1)
"""The value of a spec, as it is stored."""

KEY = re.compile(r'[\w.:-]{1,255}')
_check_text = TEXT.at(versions.MAX)
SENT = dict[str, str | bool | int | float]
"""The shape of specs as they were sent."""

_JSON_TYPES = {bool: 'boolean', int: 'integer', float: 'number'}


def checked_value(key: str, value: typing.Any, kinds: tuple[type, ...]) -> str:
    """Return the value of a spec, a text or one of these kinds, as text."""
    try:
        if not KEY.fullmatch(key):
            raise ValidationError(
                'must be a key of 1 to 255 letters, digits, and _ . : -'
            )
        return _check_text(str(value) if type(value) in kinds else value)
    except ValidationError as error:
        raise error.inside(key[:40]) from None


class Specs(schema.Type):
    """An object of specs: texts and values of some types, kept as text."""

    def __init__(self, *kinds: type):
        self._kinds = kinds

    def at(self, minor: int) -> schema.Check:
        def check(specs: typing.Any) -> dict[str, str]:
            if type(specs) is not dict:
                raise ValidationError('must be an object')
            return {
                key: checked_value(key, value, self._kinds)
                for key, value in specs.items()
            }

        return check

    def json_schema(self, minor: int) -> dict:
        return {
            'type': 'object',
            'propertyNames': {'pattern': f'^{KEY.pattern}$'},
            'additionalProperties': {
                'anyOf': [
                    TEXT.json_schema(minor),
                    *({'type': _JSON_TYPES[kind]} for kind in self._kinds),
                ]
            },
        }
