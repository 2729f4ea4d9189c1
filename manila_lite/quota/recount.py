"""Recounts: the usage computed from the resources themselves."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
import itertools
import typing

import orjson

from manila_lite.db.queries.quotas import counts, quotas
from manila_lite.db.queries.quotas.counts import Charge
from manila_lite.db.queries.quotas.quotas import Key, Owner
from manila_lite.db.session import Session
from manila_lite.quota import sets


class Usage(typing.NamedTuple):
    in_use: int = 0
    reserved: int = 0


class Difference(typing.NamedTuple):
    """A usage row that differs from a recount."""

    key: Key
    stored: Usage
    counted: Usage


def to_reservation(owner: Owner, deltas: Mapping[str, int]) -> list:
    """Return a JSON entry for the `charges` of a work row."""
    return [owner.project_id, owner.user_id, owner.share_type_id, dict(deltas)]


def from_reservation(entry: Iterable[typing.Any]) -> Charge:
    *owner, deltas = entry
    return Owner(*owner), deltas


def recount(session: Session, project_id: str | None = None) -> dict[Key, Usage]:
    """Return the usage of a project, or of all, without zero entries."""
    in_use = _sum(
        itertools.chain(
            counts.count_shares(session, project_id),
            counts.count_snapshots(session, project_id),
            counts.count_networks(session, project_id),
            counts.count_groups(session, project_id),
            counts.count_group_snapshots(session, project_id),
            counts.count_encryption_keys(session, project_id),
            counts.count_backups(session, project_id),
            counts.count_changes_of_type(session, project_id),
        )
    )
    reserved = _sum(_owed(session, project_id))
    return {
        key: Usage(in_use[key], reserved[key])
        for key in sorted({*in_use, *reserved})
        if in_use[key] or reserved[key]
    }


def differences(session: Session, project_id: str | None = None) -> list[Difference]:
    """Return the differences of usage rows and a recount; none if correct."""
    stored = {
        Key(row.project_id, row.scope, row.scope_id, row.resource): Usage(
            row.in_use, row.reserved
        )
        for row in quotas.list_all_usages(session, project_id)
    }
    counted = recount(session, project_id)
    pairs = (
        (key, stored.get(key, Usage()), counted.get(key, Usage()))
        for key in sorted({*stored, *counted})
    )
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def correct(
    session: Session, defaults: Mapping[str, int], project_id: str | None = None
) -> list[Difference]:
    """Write a recount to the usage rows; return the differences found."""
    quotas.lock_limits(session)
    quotas.list_all_usages(session, project_id, lock=True)
    found = differences(session, project_id)
    sets.create_usages(session, defaults, [wrong.key for wrong in found])
    quotas.set_usages(session, [(wrong.key, *wrong.counted) for wrong in found])
    return found


def _sum(charges: Iterable[Charge]) -> Counter[Key]:
    total: Counter[Key] = Counter()
    for owner, deltas in charges:
        for key in owner.keys(deltas):
            total[key] += deltas[key.resource]
    return total


def _owed(session: Session, project_id: str | None) -> Iterator[Charge]:
    containing = None
    if project_id is not None:
        containing = orjson.dumps(project_id).decode()
    for charges in counts.list_charges(session, containing):
        for owner, deltas in map(from_reservation, orjson.loads(charges)):
            if project_id in (None, owner.project_id):
                yield owner, deltas
