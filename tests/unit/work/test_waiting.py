"""Work that waits is still a request of its time, and says why it waits."""

import datetime

import sqlalchemy as sa

from manila_lite.work import table, waiting
from tests.support import sampling
from tests.unit.work.builders import claim, row, submit_work, taken_over


def test_age_of_a_request_does_not_end_with_a_claim(db):
    work_id = submit_work(db)
    db.write(
        lambda session: session.run(
            sa.update(table.WORK).values(
                created_at=session.now - datetime.timedelta(seconds=90)
            )
        )
    )
    first = claim(db, work_id)
    db.write(table.release, first, 0.0)
    second = claim(db, work_id)
    assert 90 <= db.read(waiting.seconds_since_request, second) < 120


def test_request_of_a_faster_clock_is_new(db):
    work_id = submit_work(db)
    db.write(
        lambda session: session.run(
            sa.update(table.WORK).values(
                created_at=session.now + datetime.timedelta(seconds=90)
            )
        )
    )
    held = claim(db, work_id)
    assert db.read(waiting.seconds_since_request, held) == 0.0


def test_released_work_shows_what_it_waits_for(db):
    held = claim(db, submit_work(db))
    db.write(table.release, held, 60.0)
    db.write(waiting.explain, held, 'the storage is starting')
    assert row(db, held.id).error == 'the storage is starting'


@sampling.dialects
def test_lost_claim_explains_nothing(db):
    lost, current = taken_over(db)
    db.write(waiting.explain, lost, 'the storage is starting')
    assert row(db, current.id).error is None
