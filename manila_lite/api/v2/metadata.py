"""The wire format that the metadata of all resources share."""

from manila_lite import exception
from manila_lite.api import schema as s

VALUES = s.schema(['metadata'], metadata=s.metadata)


def show(found: dict[str, str]) -> dict:
    return {'metadata': found}


def show_one(found: dict[str, str], key: str) -> dict:
    """Return one key, under another name than in the full response."""
    if key not in found:
        raise exception.MetadataItemNotFound(key=key)
    return {'meta': {key: found[key]}}


def require_single_key(values: dict[str, str], key: str) -> dict[str, str]:
    """Return the values if they are exactly the key of the URL."""
    if set(values) != {key}:
        raise exception.InvalidInput(
            reason=f'metadata must have exactly the key of the URL, {key}'
        )
    return values
