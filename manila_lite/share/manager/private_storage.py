"""The private storage of drivers, in the database."""

from collections.abc import Callable, Mapping
import typing
import uuid

from manila_lite import exception
from manila_lite.db.models.engine import MAX_KEY_LENGTH, MAX_VALUE_LENGTH
from manila_lite.db.queries import private_data
from manila_lite.db.session import Database, Session
from manila_lite.work import table
from manila_lite.work.job import current_job


class DatabasePrivateStorage:
    """Implements `PrivateStorage` for all drivers of a process.

    Each call has a short transaction of its own: no other one is open
    while a driver is called. A worker that has lost its claim cannot write:
    its successor may have written, or the resource may be gone.
    """

    def __init__(self, db: Database):
        self.db = db

    def get(
        self,
        entity_id: str,
        key: str | list[str] | None = None,
        default: str | None = None,
    ) -> str | dict[str, str] | None:
        found = self.db.read(private_data.get, _valid_id(entity_id))
        if key is None:
            return found
        if isinstance(key, str):
            return found.get(key, default)
        return {one: found[one] for one in key if one in found}

    def update(
        self,
        entity_id: str,
        details: Mapping[str, object],
        delete_existing: bool = False,
    ) -> Mapping[str, object]:
        self._write(
            private_data.update,
            _valid_id(entity_id),
            _valid_texts(details),
            delete_existing=delete_existing,
        )
        return details

    def delete(self, entity_id: str, key: str | list[str] | None = None) -> None:
        entity_id = _valid_id(entity_id)
        if key is None:
            self._write(private_data.delete_all, [entity_id])
        else:
            keys = {key} if isinstance(key, str) else set(key)
            self._write(private_data.delete, entity_id, keys)

    def _write(
        self, function: Callable[..., None], *args: typing.Any, **kwargs: typing.Any
    ) -> None:
        self.db.write(_write_claimed, function, *args, **kwargs)


def _write_claimed(
    session: Session, function: Callable[..., None], *args: object, **kwargs: object
) -> None:
    """Call the function if the work that the driver is called for is held."""
    job = current_job()
    if job is not None and not table.renew(session, job.claim, job.settings.lease):
        raise exception.ClaimLost(id=job.claim.id)
    function(session, *args, **kwargs)


def _valid_id(entity_id: object) -> str:
    """Return an id in the form that our rows have."""
    try:
        return str(uuid.UUID(str(entity_id)))
    except ValueError:
        raise exception.InvalidInput(
            reason=f'the id {entity_id} is not a UUID'
        ) from None


def _valid_texts(details: Mapping[str, object]) -> dict[str, str]:
    if not isinstance(details, Mapping):
        raise exception.InvalidInput(reason='details must be a dict')
    for key, value in details.items():
        if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_LENGTH:
            raise exception.InvalidInput(
                reason=f'the key {key} is not a text of 1 to '
                f'{MAX_KEY_LENGTH} characters'
            )
        # The value may be a secret.
        if not isinstance(value, str | int | float):
            raise exception.InvalidInput(
                reason=f'the value of {key} is neither a text nor a number'
            )
        if len(str(value)) > MAX_VALUE_LENGTH:
            raise exception.InvalidInput(
                reason=f'the value of {key} is longer than '
                f'{MAX_VALUE_LENGTH} characters'
            )
    return {key: str(value) for key, value in details.items()}
