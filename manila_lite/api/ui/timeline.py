"""Past and coming events of a share, in order of time."""

from collections.abc import Collection, Iterator, Sequence
import itertools
import typing

from manila_lite.api.ui import html
from manila_lite.db.queries.shares import history
from manila_lite.db.queries.work import events as journal
from manila_lite.db.rows import (
    DriverCallRow,
    MessageRow,
    MoveRow,
    RuleOfInstanceRow,
    WorkOfResourceRow,
)
from manila_lite.db.session import Session
from manila_lite.messages import user_message

LONGEST = 200
SUCCEEDED, FAILED = 'succeeded', 'failed'
RUNNING, CUT_OFF = 'running', 'cut_off'
_OUTCOMES = {'ok': SUCCEEDED, 'unavailable': 'unavailable'}


class History(typing.NamedTuple):
    """The rows of a share that its time line is made from."""

    rules: Sequence[RuleOfInstanceRow] = ()
    moves: Sequence[MoveRow] = ()
    work: Sequence[WorkOfResourceRow] = ()
    calls: Sequence[DriverCallRow] = ()


class Event(typing.NamedTuple):
    """Something that happened to a share, or is about to."""

    at: str
    kind: str
    text: str
    detail: str
    request_id: str | None
    status: str | None = None


class Message(typing.NamedTuple):
    """A message about a resource, as its page shows it."""

    created_at: str
    level: str
    resource_id: str | None
    text: str
    request_id: str | None

    @classmethod
    def of(cls, row: MessageRow, *, is_admin: bool) -> typing.Self:
        """Return the message of a row, with an explanation for administrators."""
        text = user_message(
            row.action_id,
            row.detail_id,
            row.reason,
            row.explanation if is_admin else None,
        )
        return cls(
            row.created_at.isoformat(),
            row.message_level,
            row.resource_id,
            text,
            row.request_id,
        )


def read(session: Session, share_id: str, *, most_parts: int) -> History:
    """Return the newest rows of the history of a share."""
    rules = history.list_rules(session, share_id, most=most_parts)
    parts = history.list_parts(session, share_id, rules, most=most_parts)
    return History(
        rules,
        journal.list_moves(session, parts, most=LONGEST),
        history.list_work(session, parts, most=LONGEST),
        history.list_driver_calls(session, parts, most=LONGEST),
    )


def of_share(
    found: History, messages: Collection[Message], *, is_admin: bool
) -> list[Event]:
    """Return the newest events first; hosts and errors for administrators."""
    events = itertools.chain(
        _moves(found.moves, is_admin),
        _work(found.work, is_admin),
        _calls(found, is_admin),
        _messages(messages),
    )
    return sorted(events, key=lambda event: event.at, reverse=True)[:LONGEST]


def _moves(moves: Collection[MoveRow], is_admin: bool) -> Iterator[Event]:
    for move in moves:
        yield Event(
            move.made_at.isoformat(),
            'move',
            f'{move.resource} {move.event}'.replace('_', ' '),
            f'by {move.made_by}' if is_admin and move.made_by else '',
            move.request_id,
            move.to_status,
        )


def _work(rows: Collection[WorkOfResourceRow], is_admin: bool) -> Iterator[Event]:
    for work in rows:
        detail = [f'attempt {work.attempt}'] if work.attempt else []
        if is_admin:
            detail += [text for text in (work.step, work.error) if text]
            detail += [f'held by {work.owner}'] if work.owner else []
            if work.blocker_kind:
                detail.append(
                    f'waits for {work.blocker_kind}, held by {work.blocker_owner}'
                )
        yield Event(
            work.created_at.isoformat(),
            f'work, {work.state}',
            work.kind.partition('.')[2].replace('_', ' '),
            '; '.join(detail),
            work.request_id,
        )


def _calls(found: History, is_admin: bool) -> Iterator[Event]:
    running = {
        (work.id, work.attempt) for work in found.work if work.state == 'running'
    }
    for call in found.calls:
        detail = []
        if call.ended_at is None:
            is_running = (call.work_id, call.attempt) in running
            status = RUNNING if is_running else CUT_OFF
            if not is_running:
                detail.append('its process ended before the call did')
        else:
            status = _OUTCOMES.get(call.outcome or '', FAILED)
            seconds = (call.ended_at - call.started_at).total_seconds()
            detail.append(f'took {html.duration(seconds)}')
        if is_admin:
            detail.append(f'on {call.host}')
            detail += [call.error] if call.error else []
        yield Event(
            call.started_at.isoformat(),
            'driver call',
            call.method,
            '; '.join(detail),
            call.request_id,
            status,
        )


def _messages(messages: Collection[Message]) -> Iterator[Event]:
    for one in messages:
        yield Event(one.created_at, 'message', one.text, '', one.request_id)
