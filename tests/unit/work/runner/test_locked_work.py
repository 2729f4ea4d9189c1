"""Leases while another transaction has locked the work of a job."""

import pytest
import sqlalchemy as sa

from manila_lite.work.statements import WORK
from tests.unit.work.builders import row
from tests.unit.work.runner.painting import run_all

pytestmark = pytest.mark.parametrize(
    'database_url', ['mysql', 'postgresql'], indirect=True
)


def test_a_locked_row_keeps_no_other_lease_from_being_renewed(runner, ask, painter, db):
    """One API was frozen in a transaction that coalesces work."""
    begun = []

    def run_second(job):
        """Run within the first job, so that both are running."""
        begun.append(job)
        if len(begun) < 2:
            ask(instance_id='other')
            run_all(runner)
            return
        locked, free = (one.id for one in begun)
        before = row(db, free).lease_until
        with db.engine.begin() as frozen:
            frozen.execute(
                sa.select(WORK.c.id).where(WORK.c.id == locked).with_for_update()
            )
            assert not runner.renew()
            assert row(db, free).lease_until > before
        before = row(db, locked).lease_until
        assert runner.renew()
        assert row(db, locked).lease_until > before

    painter.does['widen'] = run_second
    ask()
    run_all(runner)
    assert len(begun) == 2
