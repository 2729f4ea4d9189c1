"""Work that meets a process of an older release waits and does not fail."""

from manila_lite import exception
from manila_lite.work import table
from tests.unit.work.builders import row
from tests.unit.work.runner.painting import raising, run_all

OLDER = exception.NewerReleaseNeeded(method='gild', where='node@old')


def test_work_waits_until_the_other_process_is_upgraded(
    new_runner, ask, painter, db, status_of, messages
):
    runner = new_runner(max_attempts=2)
    painter.does['remove'] = raising(OLDER)
    work_id = ask('remove', 'delete')
    for _ in range(5):
        run_all(runner)
        found = row(db, work_id)
        assert (found.state, found.attempt) == ('queued', 0)
        assert 'node@old' in found.error
        assert not runner.step()  # it is not due
        db.write(table.postpone, work_id, -1.0)
    assert status_of('i') == 'deleting'
    assert messages() == []
    del painter.does['remove']
    run_all(runner)
    assert row(db, work_id) is None


def test_work_that_called_the_driver_is_rescued_instead(runner, ask, painter, db):
    def call_and_meet(job):
        job.has_effects = True
        raise OLDER

    painter.does['widen'] = call_and_meet
    work_id = ask()
    run_all(runner)
    assert row(db, work_id).state == 'running'
    db.write(table.expire_leases, ['blue'])
    run_all(runner)
    assert painter.calls[-1] == 'rescue'
