"""Runners of one process ask together whether there is work to sweep."""

import pytest
import sqlalchemy as sa

from manila_lite.rpc.contract import endpoint_handlers
from manila_lite.work import table
from manila_lite.work.job import Settings
from manila_lite.work.runner import Runner, SweepProbe
from tests.support.processes import wait_until
from tests.unit.work.builders import submit_work
from tests.unit.work.runner.test_threads import Painter

SETTINGS = Settings(sweep_interval=2.0, batch=3)


@pytest.fixture
def painter():
    return Painter()


@pytest.fixture
def statements(db):
    """What has been asked of the database, up to now."""
    found = []

    def note(connection, cursor, statement, parameters, context, many):
        if 'FROM work' in statement:
            found.append(statement)

    engines = {db.engine, db._read_engine}
    for engine in engines:
        sa.event.listen(engine, 'before_cursor_execute', note)
    yield found
    for engine in engines:
        sa.event.remove(engine, 'before_cursor_execute', note)


def test_runners_share_an_answer_for_a_quarter_of_the_interval(db, statements):
    moments = [0.0]
    probe = SweepProbe(db, clock=lambda: moments[-1])
    for queue in ('blue', 'red', 'blue', 'red'):
        assert not probe.may_find([queue], SETTINGS, 2)
    assert len(statements) == 2  # the first one was alone
    for moment in (0.49, 0.5, 0.6):
        moments.append(moment)
        for queue in ('blue', 'red'):
            assert not probe.may_find([queue], SETTINGS, 2)
    assert len(statements) == 3


def test_probe_tells_the_queues_that_have_work(db):
    probe = SweepProbe(db, clock=lambda: 0.0)
    assert not probe.may_find(['red'], SETTINGS, 2)
    submit_work(db, queue='blue', args={'instance_id': 'i'})
    assert probe.may_find(['blue'], SETTINGS, 2)
    assert not probe.may_find(['red'], SETTINGS, 2)


def test_full_queue_hides_no_other(db):
    for number in range(SETTINGS.batch):
        submit_work(db, queue='blue', args={'instance_id': f'{number}'})
    assert set(
        db.read(table.list_queues_to_sweep, ['blue', 'red'], SETTINGS.batch, 2.0)
    ) == {'blue', 'red'}


def test_runners_with_a_probe_find_work_without_hints(db, painter):
    """Also what comes when none of them has had work for a while."""
    probe = SweepProbe(db)
    runners = [
        Runner(
            db,
            queues=[queue],
            handlers=endpoint_handlers(painter),
            owner='me',
            settings=Settings(sweep_interval=0.02, workers=1),
            probe=probe,
        )
        for queue in ('blue', 'red')
    ]
    for runner in runners:
        runner.start()
    try:
        for number, queue in enumerate(('blue', 'red', 'blue'), 1):
            submit_work(db, queue=queue, args={'instance_id': 'i'})
            wait_until(
                lambda number=number: len(painter.done) == number,
                'it is done',
                interval=0.005,
            )
    finally:
        for runner in runners:
            assert runner.stop(20)
