"""What metadata of any resource have in common on the wire."""

from manila_lite import exception
from manila_lite.api import schema as s

VALUES = s.schema(['metadata'], metadata=s.metadata)


def show(found: dict[str, str]) -> dict:
    return {'metadata': found}


def show_one(found: dict[str, str], key: str) -> dict:
    """One key, which answers under another name than all of them."""
    if key not in found:
        raise exception.MetadataItemNotFound(key=key)
    return {'meta': {key: found[key]}}


def require_single_key(values: dict[str, str], key: str) -> dict[str, str]:
    """The values, when they are exactly those of the key in the URL."""
    if set(values) != {key}:
        raise exception.InvalidInput(
            reason=f'metadata must have exactly the key of the URL, {key}'
        )
    return values
