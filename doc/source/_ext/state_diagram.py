"""Drawings of state tables, with one lane for each status in flight.

The moves into the status are on the left of a lane, the moves that end it
on the right. No lines cross, so the drawing needs no layout program and is
the same on every machine.
"""

from collections.abc import Collection, Iterator
from html import escape
import textwrap
from typing import NamedTuple

from manila_lite.states import machine as machines

CHAR = 7.3  # width of a character of the font
LINE = 16  # height of a line of text
PAD = 8  # around text in a box
ARROW = 28  # length of an arrow in addition to its label
WRAP = 26  # characters in one line of a list of statuses

_STYLE = (
    'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
    'font-size="12" fill="currentColor"'
)


class Step(NamedTuple):
    """One arrow of a lane: its label, and the lines at its far end."""

    event: str
    far_end: list[str]

    @property
    def height(self) -> int:
        return LINE * len(self.far_end) + 2 * PAD


class Lane(NamedTuple):
    status: str | None
    before: list[Step]
    after: list[Step]

    @property
    def height(self) -> int:
        return max(
            sum(step.height for step in side) for side in (self.before, self.after)
        )


def sources(machine: machines.Machine, move: machines.Move) -> str:
    """Return the source statuses of a move in the shortest form."""
    others = machine.statuses - move.sources
    if len(others) < len(move.sources):
        return f'any but {listed(others)}' if others else 'any'
    return listed(move.sources)


def listed(statuses: Collection[str]) -> str:
    return ', '.join(sorted(statuses))


def moves(machine: machines.Machine) -> list[machines.Move]:
    """Return the moves of the table, without resets by administrators."""
    resets = {machine.reset_event(status) for status in machine.resets}
    return [move for move in machine.moves if move.event not in resets]


def lanes(machine: machines.Machine) -> Iterator[Lane]:
    """Yield a lane per status in flight, then one per move at rest."""
    found = moves(machine)
    for status in machine.in_flight:
        yield Lane(
            status,
            [
                *_creations(machine, status),
                *(_into(machine, move) for move in found if move.target == status),
            ],
            [
                _out_of(move)
                for move in found
                if status in move.sources and move.target not in machine.in_flight
            ],
        )
    for move in found:
        if (
            not move.sources & machine.in_flight.keys()
            and move.target not in machine.in_flight
        ):
            yield Lane(None, [_into(machine, move)], [_out_of(move)])


def _creations(machine: machines.Machine, status: str) -> Iterator[Step]:
    for event, first in machine.initial.items():
        if first == status:
            yield Step(event, ['new'])


def _into(machine: machines.Machine, move: machines.Move) -> Step:
    return Step(move.event, textwrap.wrap(sources(machine, move), WRAP))


def _out_of(move: machines.Move) -> Step:
    gone = move.target is machines.GONE
    return Step(move.event, ['gone' if gone else str(move.target)])


def svg(machine: machines.Machine) -> str:
    """Return the drawing as SVG for an HTML page."""
    drawn = list(lanes(machine))
    columns = _columns(drawn)
    body, top = [], PAD
    for lane in drawn:
        body += _lane(machine, lane, top, columns)
        top += lane.height + 2 * PAD
    name = machine.resource.replace('_', ' ')
    return (
        f'<svg class="state-diagram" role="img" width="{columns[-1]:.0f}"'
        f' height="{top}" viewBox="0 0 {columns[-1]:.0f} {top}" {_STYLE}>'
        f'<title>Moves of the {escape(machine.column)} of a '
        f'{escape(name)}</title>{"".join(body)}</svg>'
    )


def _columns(drawn: list[Lane]) -> list[float]:
    """Return the x positions of the columns.

    The columns are ends, arrows, statuses, arrows, ends.
    """

    def widest(texts: Iterator[str]) -> float:
        return max((len(text) for text in texts), default=0) * CHAR

    before = [step for lane in drawn for step in lane.before]
    after = [step for lane in drawn for step in lane.after]
    widths = (
        widest(line for step in before for line in step.far_end) + 2 * PAD,
        widest(step.event for step in before) + ARROW,
        widest(lane.status or '' for lane in drawn) + 2 * PAD,
        widest(step.event for step in after) + ARROW,
        widest(line for step in after for line in step.far_end) + 2 * PAD,
    )
    columns = [1.0]
    for width in widths:
        columns.append(columns[-1] + width)
    columns[-1] += 1
    return columns


def _lane(
    machine: machines.Machine, lane: Lane, top: float, columns: list[float]
) -> Iterator[str]:
    left, in_arrows, status, out_arrows, right, end = columns
    if lane.status is not None:
        rescue = machine.in_flight[lane.status]
        yield _box(
            status,
            top,
            out_arrows - status,
            lane.height,
            [lane.status, f'({_rescue_name(rescue)})'],
            in_flight=True,
        )
    else:
        yield _line(status, out_arrows, top + lane.height / 2)
    for step, middle in _spread(lane.before, top, lane.height):
        yield _box(
            left,
            middle - step.height / 2 + PAD / 2,
            in_arrows - left,
            step.height - PAD,
            step.far_end,
        )
        yield _arrow(
            in_arrows, status, middle, step.event, head=lane.status is not None
        )
    for step, middle in _spread(lane.after, top, lane.height):
        yield _arrow(out_arrows, right, middle, step.event if lane.status else '')
        yield _box(
            right,
            middle - step.height / 2 + PAD / 2,
            end - 1 - right,
            step.height - PAD,
            step.far_end,
        )


def _spread(
    steps: list[Step], top: float, height: float
) -> Iterator[tuple[Step, float]]:
    """Yield the steps with their middles, spread evenly over the lane."""
    space = (height - sum(step.height for step in steps)) / (len(steps) or 1)
    for step in steps:
        yield step, top + (step.height + space) / 2
        top += step.height + space


def _rescue_name(rescue: machines.Rescue) -> str:
    return {
        machines.Ask: 'ask',
        machines.Repeat: 'repeat',
        machines.GiveUp: 'give up',
        machines.Resume: 'resume',
    }[type(rescue)]


def _box(
    x: float,
    y: float,
    width: float,
    height: float,
    lines: list[str],
    *,
    in_flight: bool = False,
) -> str:
    fill = '#dfe9f3' if in_flight else 'none'
    first = y + (height - LINE * len(lines)) / 2 + LINE * 0.75
    text = ''.join(
        f'<text x="{x + width / 2:.1f}" y="{first + LINE * number:.1f}" '
        f'text-anchor="middle">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="5" fill="{fill}" '
        f'stroke="currentColor"/>{text}'
    )


def _line(start: float, end: float, y: float) -> str:
    return f'<path d="M{start:.1f} {y:.1f} H{end:.1f}" stroke="currentColor"/>'


def _arrow(start: float, end: float, y: float, label: str, *, head: bool = True) -> str:
    tip = f'<path d="M{end:.1f} {y:.1f} l-7 -3.5 v7 z"/>' if head else ''
    return (
        f'{_line(start, end, y)}{tip}<text x="{start + 8:.1f}" '
        f'y="{y - 4:.1f}">{escape(label)}</text>'
    )
