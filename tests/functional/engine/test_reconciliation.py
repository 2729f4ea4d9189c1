"""What is in flight without work comes to rest: once, and visibly."""

import concurrent.futures
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.admin import recovery
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import MACHINE
from manila_lite.states.share_instance import S
from tests.functional.engine.service_process import CTX
from tests.functional.engine.service_process import PATIENCE
from tests.functional.engine.service_process import WORK

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)

CREATE, EXTEND, SHRINK, UPDATE, DELETE = '002', '008', '009', '005', '007'
REVERT = '006'
UNKNOWN = '001'


@pytest.fixture
def house(build_house):
    house = build_house(backends=['alpha'])
    house.register()
    house.run()
    return house


@pytest.fixture
def share(house):
    """A share of 3 GiB."""
    share = house.create(3)
    house.run()
    return share


def instance_id(house, share):
    return house.target(share).instance_id


def move(house, share, *events):
    """Moves without work: what a decree, or a bug, leaves behind."""
    for event in events:
        house.db.write(fire, MACHINE, instance_id(house, share), event)


def rescue(house):
    """One pass, and what it asked for; how many it found."""
    found = house.backend().reconciliation.run_pass()
    house.run()
    return found


def says(house, answer):
    """Have the back end answer this when it is asked about a share."""

    def get_share_status(share, share_server=None):
        if isinstance(answer, (type, Exception)):
            raise answer
        return answer

    house.backend().provisioning.driver = driver = house.driver()
    driver.get_share_status = get_share_status


def shown(house, share):
    found = house.target(share)
    return found.status, found.size


def decisions(house):
    return house.db.read(recovery.list_log, limit=100)


def questions(*houses):
    return sum(
        [call.method for call in house.driver().calls].count(
            'get_share_status'
        )
        for house in houses
    )


# Ask

GOOD = {
    'status': 'available',
    'size': 3,
    'share_proto': 'NFS',
    'export_locations': ['1.2.3.4:/a'],
}
BAD = [
    {'status': 'error'},
    {'status': 'creating'},
    GOOD | {'share_proto': 'CIFS'},
    NotImplementedError,
    exception.ShareResourceNotFound(share_id='x'),
    exception.ShareBackendException(msg='broken'),
    RuntimeError('odd'),
    {},
    None,
    'available',
    {'status': None},
]


@on_sqlite
@pytest.mark.parametrize('answer', BAD + [GOOD | {'size': 4}], ids=str)
def test_what_is_not_as_it_should_be_was_not_created(house, share, answer):
    move(house, share, 'reset_creating')
    says(house, answer)
    assert rescue(house) == 1
    assert shown(house, share) == ('error', 3)
    assert house.messages() == [(CREATE, UNKNOWN)]
    assert rescue(house) == 0
    assert house.problems() == []


@pytest.mark.parametrize(
    'answer',
    [
        GOOD,
        {'status': 'available'},
        {'status': 'available', 'size': 3, 'export_locations': None},
    ],
    ids=str,
)
def test_what_the_back_end_has_was_created(house, share, answer):
    move(house, share, 'reset_creating')
    says(house, answer)
    assert rescue(house) == 1
    assert shown(house, share) == ('available', 3)
    paths = [
        row.path
        for row in house.rows(
            sa.text('SELECT path FROM share_instance_export_locations')
        )
    ]
    assert paths == (answer.get('export_locations') or [])
    assert house.messages() == []
    assert house.problems() == []


@on_sqlite
@pytest.mark.parametrize(
    'event, action, status',
    [
        ('extend', EXTEND, 'extending_error'),
        ('shrink', SHRINK, 'shrinking_error'),
    ],
)
@pytest.mark.parametrize(
    'answer',
    BAD + [{'status': 'available'}, {'status': 'available', 'size': None}],
    ids=str,
)
def test_what_cannot_be_told_has_failed(
    house, share, event, action, status, answer
):
    move(house, share, event)
    says(house, answer)
    assert rescue(house) == 1
    assert shown(house, share) == (status, 3)
    assert house.messages() == [(action, UNKNOWN)]
    assert house.problems() == []


@pytest.mark.parametrize('event', ['extend', 'shrink'])
@pytest.mark.parametrize('size', [2, 3, 7])
def test_the_size_is_what_the_back_end_says(house, share, event, size):
    move(house, share, event)
    says(house, GOOD | {'size': size})
    assert rescue(house) == 1
    assert shown(house, share) == ('available', size)
    assert house.messages() == []
    assert [
        problem for problem in house.problems() if 'should be' not in problem
    ] == []


# Repeat and give up


@pytest.mark.parametrize('event', ['reset_deleting', 'force_delete'])
def test_a_deletion_is_repeated(house, share, event):
    move(house, share, event)
    assert rescue(house) == 1
    assert house.rows(sa.text('SELECT id FROM shares')) == []
    assert house.driver().inventory() == {}
    assert house.problems() == []


@on_sqlite
def test_a_repeated_deletion_may_fail_visibly(house, share):
    move(house, share, 'reset_deleting')
    house.driver().fail_next('delete_share')
    assert rescue(house) == 1
    assert house.status(share) == 'error_deleting'
    assert house.messages() == [(DELETE, UNKNOWN)]
    assert house.problems() == []


@pytest.mark.parametrize(
    'status', ['migrating', 'migrating_to', 'server_migrating']
)
def test_what_nobody_can_finish_is_given_up(house, share, status):
    move(house, share, f'reset_{status}')
    assert rescue(house) == 1
    assert house.status(share) == 'error'
    assert house.messages() == [(UPDATE, UNKNOWN)]
    assert house.problems() == []


@on_sqlite
@pytest.mark.parametrize('event', ['ensure', 'snapshot'])
def test_what_changes_no_data_is_as_good_as_before(house, share, event):
    move(house, share, event)
    assert rescue(house) == 1
    assert house.status(share) == 'available'
    assert house.messages() == []


@on_sqlite
@pytest.mark.parametrize(
    'event, status, action',
    [('revert', 'error', REVERT), ('unmanage', 'unmanage_error', UPDATE)],
)
def test_what_nobody_knows_of_is_given_up(house, share, event, status, action):
    move(house, share, event)
    assert rescue(house) == 1
    assert house.status(share) == status
    assert house.messages() == [(action, UNKNOWN)]


# The record


def test_every_decision_is_written_down(house, share):
    move(house, share, 'reset_creating')
    says(house, GOOD | {'size': 4})
    rescue(house)
    (written,) = decisions(house)
    assert (
        written.resource,
        written.resource_id,
        written.status_before,
        written.action,
        written.status_after,
        written.reason,
    ) == (
        'share_instance',
        instance_id(house, share),
        'creating',
        'given up',
        'error',
        'the back end has 4 GiB',
    )
    assert written.made_by.startswith('manila-share@node@alpha:')
    assert written.host == 'node@alpha#pool'
    assert 0 <= written.duration < 60


def test_what_is_left_alone_is_not_written_down(house, share):
    house.ask('extend', share, 5)
    rescue(house)
    assert decisions(house) == []


def test_a_decision_tells_what_it_rests_on(house, share):
    move(house, share, 'extend')
    rescue(house)
    (written,) = decisions(house)
    assert (written.action, written.status_after) == ('converged', 'available')
    assert written.evidence.startswith('get_share_status: (3, ')


def test_a_repeated_deletion_is_written_down_as_such(house, share):
    move(house, share, 'reset_deleting')
    rescue(house)
    (written,) = decisions(house)
    assert (written.action, written.evidence) == (
        'repeated',
        'provisioning.delete_share_instance',
    )


# The pass


def test_what_was_moved_later_is_not_of_the_start(house, share):
    other = house.create(3)
    house.run()
    move(house, share, 'reset_migrating')
    began = house.db.utcnow()
    move(house, other, 'reset_migrating')
    backend = house.backend()
    assert backend.reconciliation.look(began)
    house.run()
    assert house.status(share) == 'error'
    assert house.status(other) == 'migrating'
    assert not backend.reconciliation.look(began)
    assert backend.reconciliation.look()
    house.run()
    assert house.status(other) == 'error'


def test_nothing_stuck_costs_no_write_and_no_question(house, share):
    writes = []
    house.db.probe = lambda name: writes.append(name)
    assert not house.backend().reconciliation.look()
    assert 'commit' not in writes
    assert len(writes) <= len(recovery.KINDS)
    assert questions(house) == 0


def test_a_mass_is_rescued_in_rounds(build_house):
    house = build_house(backends=['alpha'], work='\n[recovery]\nbatch = 3')
    house.register()
    shares = [house.create(1) for _ in range(10)]
    house.run()
    for share in shares:
        move(house, share, 'reset_migrating')
    assert house.backend().reconciliation.look()
    house.until(lambda: house.run() or not house.owed())
    assert {house.status(share) for share in shares} == {'error'}
    assert len(decisions(house)) == 10
    assert house.problems() == []


@on_sqlite
def test_a_question_that_hangs_is_given_up(build_house):
    """The others are answered in time, however busy the machine is."""
    house = build_house(
        backends=['alpha'], work='\n[recovery]\nquestion_timeout = 1'
    )
    house.register()
    shares = [house.create(1) for _ in range(3)]
    house.run()
    for share in shares:
        move(house, share, 'extend')
    hung, ended = house.driver().get_share_status, threading.Event()
    victim = instance_id(house, shares[1])

    def get_share_status(share, share_server=None):
        if share['id'] == victim:
            ended.wait(PATIENCE)
        return hung(share, share_server)

    house.driver().get_share_status = get_share_status
    rescue(house)
    assert [house.status(share) for share in shares] == [
        'available',
        'extending_error',
        'available',
    ]
    ended.set()
    assert [one.reason for one in decisions(house) if one.reason] == [
        'the back end did not answer within 1 s'
    ]


def test_questions_that_hang_keep_nobody_from_other_work(build_house):
    """They are as many as the workers, and users do not notice."""
    house = build_house(backends=['alpha']).start()
    stuck = [house.created(1) for _ in range(3)]
    other = house.created(1)
    for share in stuck:
        move(house, share, 'extend')
    hang = house.driver().hang_next('get_share_status', None)
    assert house.backend().reconciliation.run_pass() == 3
    assert hang.reached()
    house.ask('extend', other, 2)
    house.until(lambda: shown(house, other) == ('available', 2))
    new = house.create(1)
    house.until(lambda: house.status(new) == 'available')
    assert {house.status(share) for share in stuck} == {'extending'}
    hang.release()
    house.until(
        lambda: {shown(house, share) for share in stuck} == {('available', 1)}
    )
    house.quiet()
    assert len(decisions(house)) == 3
    assert questions(house) == 3
    assert house.problems() == []


def test_a_row_that_raises_does_not_hold_up_the_others(build_house):
    house = build_house(backends=['alpha'])
    house.register()
    shares = [house.create(1) for _ in range(5)]
    house.run()
    for share in shares:
        move(house, share, 'extend')
    house.driver().fail_next('get_share_status', 2, ZeroDivisionError())
    rescue(house)
    assert sorted(house.status(share) for share in shares) == [
        *['available'] * 3,
        *['extending_error'] * 2,
    ]
    assert house.owed() == []
    assert house.problems() == []


def test_a_back_end_that_is_away_is_not_asked_again_and_again(build_house):
    house = build_house(
        backends=['alpha'],
        work='\n[recovery]\nquestion_timeout = 0.1\nunanswered_questions = 1',
    )
    house.register()
    shares = [house.create(1) for _ in range(3)]
    house.run()
    for share in shares:
        move(house, share, 'extend')
    answered = threading.Event()
    asked = []

    def get_share_status(share, share_server=None):
        asked.append(share['id'])
        answered.wait(PATIENCE)
        return GOOD | {'size': 1}

    house.driver().get_share_status = get_share_status
    rescue(house)
    answered.set()
    assert len(asked) == 1
    assert sorted(house.status(share) for share in shares) == [
        'extending',
        'extending',
        'extending_error',
    ]
    assert len(house.owed()) == 2


# Once


def test_what_has_work_is_left_to_it(house, share):
    house.ask('extend', share, 5)
    assert house.backend().reconciliation.run_pass() == 0
    house.run()
    assert shown(house, share) == ('available', 5)


def test_two_passes_before_the_rescue_are_one(house, share):
    move(house, share, 'reset_migrating')
    passes = house.backend().reconciliation.run_pass
    assert [passes(), passes()] == [1, 0]
    house.run()
    assert house.messages() == [(UPDATE, UNKNOWN)]


def test_two_managers_of_a_back_end_rescue_once(build_house, house):
    second = build_house(backends=['alpha'])
    second.register()
    shares = [house.create(3) for _ in range(4)]
    house.run()
    for share, event in zip(
        shares,
        ('reset_creating', 'extend', 'shrink', 'reset_migrating'),
        strict=True,
    ):
        move(house, share, event)
    at_once = threading.Barrier(2)

    def look(one):
        at_once.wait()
        rescue(one)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for looking in [pool.submit(look, one) for one in (house, second)]:
            looking.result()
    house.run()
    assert [house.status(share) for share in shares] == [
        'available',
        'available',
        'available',
        'error',
    ]
    assert house.messages() == [(UPDATE, UNKNOWN)]
    assert questions(house, second) == 3
    assert house.owed() == []
    assert house.problems() == []


@on_sqlite
def test_what_another_manager_has_locked_is_left_to_it(build_house):
    house, second = (
        build_house(backends=['alpha'], locked=True) for _ in range(2)
    )
    house.register()
    share = house.create(3)
    house.run()
    move(house, share, 'extend')
    assert house.backend().reconciliation.run_pass() == 1
    rescued = f'rescue-{instance_id(house, share)}'
    with second.process.locks.try_lock(rescued) as held:
        assert held
        house.run()
        assert house.status(share) == 'extending'
        assert questions(house, second) == 0
    house.db.write(
        lambda session: session.run(sa.update(WORK).values(next_try_at=0.0))
    )
    house.run()
    assert house.status(share) == 'available'
    assert questions(house, second) == 1
    assert len(decisions(house)) == 1


def test_other_back_ends_rescue_their_own(build_house):
    house = build_house()
    house.register()
    house.run()
    shares = [house.create(1) for _ in range(6)]
    house.run()
    for share in shares:
        move(house, share, 'reset_migrating')
    of_alpha = [
        share
        for share in shares
        if house.target(share).host == 'node@alpha#pool'
    ]
    assert 0 < len(of_alpha) < 6
    assert rescue(house) == len(of_alpha)
    assert {
        share for share in shares if house.status(share) == 'error'
    } == set(of_alpha)


# What abandoned work had taken


@pytest.fixture
def abandoned(house, share):
    """An extension by 4 GiB whose worker died before the driver did it."""
    house.ask('extend', share, 7)
    house.scheduler.runners[0].step()
    house.db.write(
        lambda session: session.run(
            sa.update(WORK).values(
                state='running',
                attempt=1,
                fence=1,
                owner='dead',
                lease_until=0.0,
            )
        )
    )
    return share


def test_an_extension_that_did_not_happen_gives_back(house, abandoned):
    house.run()
    assert shown(house, abandoned) == ('available', 3)
    assert house.messages() == [(EXTEND, UNKNOWN)]  # it was accepted
    assert house.problems() == []


def test_an_extension_that_happened_is_settled(house, abandoned):
    says(house, GOOD | {'size': 7})
    house.run()
    assert shown(house, abandoned) == ('available', 7)
    assert house.messages() == []
    assert [
        problem for problem in house.problems() if 'should be 7' not in problem
    ] == []


@pytest.mark.parametrize(
    'error',
    [
        exception.ShareBackendException(msg='broken'),
        RuntimeError('odd'),
        NotImplementedError,
    ],
)
def test_an_extension_nobody_knows_of_gives_back(house, abandoned, error):
    says(house, error)
    house.run()
    assert house.status(abandoned) == 'extending_error'
    assert len(house.messages()) == 1
    assert house.problems() == []


@pytest.mark.parametrize(
    'status',
    [
        'creating',
        'deleting',
        'migrating',
        'error',
        'available',
        'error_deleting',
    ],
)
def test_a_decree_about_abandoned_work_loses_nothing_reserved(
    house, abandoned, status
):
    house.operations.reset_status(CTX, instance_id(house, abandoned), status)
    house.run()
    rescue(house)
    assert house.problems() == []


@pytest.mark.parametrize('verb', ['force_delete', 'reset_and_delete'])
def test_a_deletion_follows_abandoned_work(house, abandoned, verb):
    if verb == 'force_delete':
        house.ask('force_delete', abandoned)
    else:
        house.operations.reset_status(
            CTX, instance_id(house, abandoned), 'error'
        )
        house.ask('delete', abandoned)
    house.run()
    assert house.rows(sa.text('SELECT id FROM shares')) == []
    assert [call.method for call in house.driver().calls].count(
        'delete_share'
    ) == 1
    assert house.problems() == []


def test_a_forced_deletion_is_still_forced_after_a_rescue(house, abandoned):
    house.ask('force_delete', abandoned)
    house.driver().fail_next('delete_share', None)
    house.run()
    assert house.rows(sa.text('SELECT id FROM shares')) == []


# Deferred deletion


@pytest.fixture
def deferring(build_house):
    house = build_house(
        backends=['alpha'], default='is_deferred_deletion_enabled = true'
    )
    house.register()
    house.run()
    return house


def used(house):
    return house.db.read(
        lambda session: dict(
            session.rows(
                sa.text(
                    'SELECT resource, in_use FROM quota_usages '
                    "WHERE scope = 'project' "
                    "AND resource IN ('shares', 'gigabytes')"
                )
            )
        )
    )


def test_a_deferred_deletion_frees_quota_at_once(deferring):
    share = deferring.create(3)
    deferring.run()
    deferring.ask('delete', share)
    assert deferring.status(share) == S.DEFERRED_DELETING
    assert used(deferring) == {'shares': 0, 'gigabytes': 0}
    deferring.run()
    assert deferring.rows(sa.text('SELECT id FROM shares')) == []
    assert used(deferring) == {'shares': 0, 'gigabytes': 0}
    assert deferring.problems() == []


def test_a_deferred_deletion_is_tried_until_it_succeeds(
    build_house, deferring
):
    house = deferring
    second = build_house(backends=['alpha'])
    shares = [house.create(3) for _ in range(2)]
    house.run()
    house.driver().fail_next('delete_share', None)
    for share in shares:
        house.ask('delete', share)
    house.run()
    assert {house.status(share) for share in shares} == {
        S.ERROR_DEFERRED_DELETING
    }
    assert house.problems() == []
    retries = [
        one.backend().deferred_deletion.retry for one in (house, second)
    ]
    assert [retry() for retry in retries] == [2, 0]
    house.run()
    assert {house.status(share) for share in shares} == {
        S.ERROR_DEFERRED_DELETING
    }
    house.driver().faults.clear()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda retry: retry(), retries))
    house.run()
    assert house.rows(sa.text('SELECT id FROM shares')) == []
    assert used(house) == {'shares': 0, 'gigabytes': 0}
    assert house.problems() == []


def test_a_deferred_deletion_without_work_is_repeated(deferring):
    house = deferring
    share = house.create(3)
    house.run()
    house.ask('delete', share)
    house.db.write(lambda session: session.run(sa.delete(WORK)))
    assert rescue(house) == 1
    assert house.rows(sa.text('SELECT id FROM shares')) == []
    assert used(house) == {'shares': 0, 'gigabytes': 0}
    assert house.problems() == []


@on_sqlite
@pytest.mark.parametrize(
    'verb, args',
    [
        ('delete', ()),
        ('force_delete', ()),
        ('extend', (9,)),
        ('shrink', (1,)),
        ('soft_delete', ()),
    ],
)
def test_what_was_given_up_is_not_touched_again(deferring, verb, args):
    share = deferring.create(3)
    deferring.run()
    deferring.driver().fail_next('delete_share')
    deferring.ask('delete', share)
    deferring.run()
    with pytest.raises((exception.Conflict, exception.Forbidden)):
        deferring.ask(verb, share, *args)
    with pytest.raises(exception.Conflict):
        deferring.operations.reset_status(
            CTX, instance_id(deferring, share), 'available'
        )
    assert deferring.problems() == []
