"""The record of scheduler hints, in the metadata of both shares.

It shows users and administrators which shares belong together or apart, and
the scheduler when a share is migrated.
"""

from collections.abc import Collection, Mapping
import contextlib
import functools
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Session

_MAX_LENGTH = 1023
"""Of a value of metadata; further ids are left out, 27 have room."""


def record(
    session: Session,
    share_id: str,
    hints: Mapping[str, typing.Any],
    *,
    of_project: str | None,
) -> None:
    """Record the hints of a new share with it and the shares they name.

    With `of_project`, public shares of other projects are not changed.
    """
    for hint, key in shares.AFFINITY_KEYS.items():
        ids = hints.get(hint)
        if not ids:
            continue
        _add(session, share_id, key, ids)
        for id in sorted(_changeable(session, ids, of_project)):
            _add(session, id, key, [share_id])


def get_hints(session: Session, share_id: str) -> dict[str, list[str]]:
    """Return the ids of other shares in the recorded hints of a share."""
    values = shares.METADATA.get(session, share_id)
    return {
        hint: list(filter(None, values.get(key, '').split(',')))
        for hint, key in shares.AFFINITY_KEYS.items()
    }


def forget(session: Session, share_id: str) -> None:
    """Remove a share from the metadata of those that name it."""
    values = shares.METADATA.get(session, share_id)
    for key in shares.AFFINITY_KEYS.values():
        for other in filter(None, values.get(key, '').split(',')):
            with contextlib.suppress(exception.NotFound):
                shares.METADATA.change(
                    session, other, key, functools.partial(_without, share_id)
                )


def _changeable(
    session: Session, ids: Collection[str], of_project: str | None
) -> set[str]:
    if of_project is None:
        return set(ids)
    return {
        row.id
        for row in session.rows(
            sa.select(shares.SHARE.c.id).where(
                shares.SHARE.c.id.in_(sorted(ids)),
                shares.SHARE.c.project_id == of_project,
            )
        )
    }


def _add(session: Session, share_id: str, key: str, named: Collection[str]) -> None:
    shares.METADATA.change(
        session, share_id, key, lambda value: functools.reduce(_with, named, value)
    )


def _with(value: str, share_id: str) -> str:
    if share_id in value.split(','):
        return value
    longer = f'{value},{share_id}' if value else share_id
    return longer if len(longer) <= _MAX_LENGTH else value


def _without(share_id: str, value: str) -> str:
    return ','.join(id for id in value.split(',') if id != share_id)
