"""What a driver reports about the progress of a server migration."""

from collections.abc import Mapping
import typing

import orjson

from manila_lite import masking

MAX_DETAILS = 16384
"""Details that are longer, as JSON, are left out."""

_TOTAL = 'total_progress'


class Progress(typing.NamedTuple):
    """A percentage, None if unknown, and what else the driver reports.

    `details` is JSON, with secrets masked; None if nothing was reported.
    """

    percent: int | None = None
    details: str | None = None


def read_progress(reply: object) -> Progress:
    """Return the progress in a driver's reply, without what is invalid."""
    if not isinstance(reply, Mapping):
        return Progress()
    return Progress(
        _percent(reply.get(_TOTAL)),
        _details({key: reply[key] for key in reply if key != _TOTAL}),
    )


def _percent(total: typing.Any) -> int | None:
    try:
        return min(100, max(0, int(float(total))))
    except (TypeError, ValueError, OverflowError):
        return None


def _details(reported: dict[typing.Any, object]) -> str | None:
    try:
        text = orjson.dumps(
            masking.mask_values(reported),
            default=lambda value: masking.mask(str(value)),
            option=orjson.OPT_NON_STR_KEYS,
        ).decode()
    except orjson.JSONEncodeError:
        return None
    return text if len(text) <= MAX_DETAILS else None
