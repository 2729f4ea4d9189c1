"""Arguments of driver methods that travel together."""

from collections.abc import Mapping
import dataclasses
from typing import Any, Self


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What a call carries, in one value.

    The fields have the names of published parameters. The method of a driver's
    part that has such a value is given one made of the arguments of the call.
    Fields that a driver method does not declare have their defaults.
    """

    @classmethod
    def required(cls) -> set[str]:
        """Return the names of the fields without a default."""
        return {
            field.name
            for field in dataclasses.fields(cls)
            if field.default is field.default_factory is dataclasses.MISSING
        }

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the value made of those arguments of a call that it has."""
        names = (field.name for field in dataclasses.fields(cls))
        return cls(**{name: given[name] for name in names if name in given})
