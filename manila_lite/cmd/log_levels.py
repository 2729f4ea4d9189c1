"""The levels of single loggers: option default_log_levels, checked."""

from collections.abc import Iterable
import logging

from manila_lite.conf import BadConfiguration

OPTION = 'default_log_levels'


def parse(pairs: Iterable[str]) -> dict[str, int]:
    """Return the level of each logger that the option names.

    oslo.log accepts the same levels, but raises a bare ValueError for any
    other, after it has set up a part of the log.
    """
    return dict(_parse_one(pair) for pair in pairs)


def _parse_one(pair: str) -> tuple[str, int]:
    name, _, level = pair.partition('=')
    try:
        return name, int(level)
    except ValueError:
        known = logging.getLevelNamesMapping()
    if level not in known:
        raise BadConfiguration(
            f'{OPTION}: "{pair}" is not logger=LEVEL, with a number or '
            f'one of {", ".join(known)} as its level'
        )
    return name, known[level]
