"""Rows in flight without work come to rest: once, and visibly."""

import concurrent.futures
import threading

import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db.queries.admin import recovery
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE
from manila_lite.states.share_instance import InstanceStatus
from tests.functional.engine.service_process import CTX
from tests.functional.engine.service_process import TIMEOUT
from tests.functional.engine.service_process import WORK

on_sqlite = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)

CREATE, EXTEND, SHRINK, UPDATE, DELETE = '002', '008', '009', '005', '007'
REVERT = '006'
UNKNOWN = '001'


@pytest.fixture
def node(build_node):
    node = build_node(backends=['alpha'])
    node.register()
    node.run()
    return node


@pytest.fixture
def share(node):
    """A share of 3 GiB."""
    share = node.create(3)
    node.run()
    return share


def instance_id(node, share):
    return node.target(share).instance_id


def move(node, share, *events):
    """Fire events without work, as `reset_status` or a bug would."""
    for event in events:
        node.db.write(fire, SHARE_INSTANCE, instance_id(node, share), event)


def rescue(node):
    """Run one pass and its work; return the number of stuck rows."""
    found = node.backend().endpoints.reconciliation.run_pass()
    node.run()
    return found


def says(node, answer):
    """Set the reply of the back end to `get_share_status`."""

    def get_share_status(share, share_server=None):
        if isinstance(answer, (type, Exception)):
            raise answer
        return answer

    node.backend().endpoints.provisioning.driver = driver = node.driver()
    driver.get_share_status = get_share_status


def shown(node, share):
    found = node.target(share)
    return found.status, found.size


def decisions(node):
    return node.db.read(recovery.list_log, limit=100)


def questions(*nodes):
    return sum(
        [call.method for call in node.driver().calls].count('get_share_status')
        for node in nodes
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
def test_creation_fails_if_the_back_end_reports_something_else(
    node, share, answer
):
    move(node, share, 'reset_creating')
    says(node, answer)
    assert rescue(node) == 1
    assert shown(node, share) == ('error', 3)
    assert node.messages() == [(CREATE, UNKNOWN)]
    assert rescue(node) == 0
    assert node.problems() == []


@pytest.mark.parametrize(
    'answer',
    [
        GOOD,
        {'status': 'available'},
        {'status': 'available', 'size': 3, 'export_locations': None},
    ],
    ids=str,
)
def test_creation_converges_if_the_back_end_has_the_share(node, share, answer):
    move(node, share, 'reset_creating')
    says(node, answer)
    assert rescue(node) == 1
    assert shown(node, share) == ('available', 3)
    paths = [
        row.path
        for row in node.rows(
            sa.text('SELECT path FROM share_instance_export_locations')
        )
    ]
    assert paths == (answer.get('export_locations') or [])
    assert node.messages() == []
    assert node.problems() == []


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
def test_resize_fails_if_the_back_end_cannot_report(
    node, share, event, action, status, answer
):
    move(node, share, event)
    says(node, answer)
    assert rescue(node) == 1
    assert shown(node, share) == (status, 3)
    assert node.messages() == [(action, UNKNOWN)]
    assert node.problems() == []


@pytest.mark.parametrize('event', ['extend', 'shrink'])
@pytest.mark.parametrize('size', [2, 3, 7])
def test_lost_resize_takes_the_size_of_the_back_end(node, share, event, size):
    move(node, share, event)
    says(node, GOOD | {'size': size})
    assert rescue(node) == 1
    assert shown(node, share) == ('available', size)
    assert node.messages() == []
    assert [
        problem for problem in node.problems() if 'should be' not in problem
    ] == []


# Repeat and give up


@pytest.mark.parametrize('event', ['reset_deleting', 'force_delete'])
def test_lost_deletion_is_repeated(node, share, event):
    move(node, share, event)
    assert rescue(node) == 1
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert node.driver().inventory() == {}
    assert node.problems() == []


@on_sqlite
def test_repeated_deletion_may_fail_visibly(node, share):
    move(node, share, 'reset_deleting')
    node.driver().fail_next('delete_share')
    assert rescue(node) == 1
    assert node.status(share) == 'error_deleting'
    assert node.messages() == [(DELETE, UNKNOWN)]
    assert node.problems() == []


@pytest.mark.parametrize(
    'status', ['migrating', 'migrating_to', 'server_migrating']
)
def test_status_that_cannot_be_finished_is_given_up(node, share, status):
    move(node, share, f'reset_{status}')
    assert rescue(node) == 1
    assert node.status(share) == 'error'
    assert node.messages() == [(UPDATE, UNKNOWN)]
    assert node.problems() == []


@on_sqlite
@pytest.mark.parametrize('event', ['ensure', 'snapshot'])
def test_operation_without_data_change_is_undone(node, share, event):
    move(node, share, event)
    assert rescue(node) == 1
    assert node.status(share) == 'available'
    assert node.messages() == []


@on_sqlite
@pytest.mark.parametrize(
    'event, status, action',
    [('revert', 'error', REVERT), ('unmanage', 'unmanage_error', UPDATE)],
)
def test_operation_with_unknown_outcome_is_given_up(
    node, share, event, status, action
):
    move(node, share, event)
    assert rescue(node) == 1
    assert node.status(share) == status
    assert node.messages() == [(action, UNKNOWN)]


# The recovery log


def test_every_decision_is_logged(node, share):
    move(node, share, 'reset_creating')
    says(node, GOOD | {'size': 4})
    rescue(node)
    (written,) = decisions(node)
    assert (
        written.resource,
        written.resource_id,
        written.status_before,
        written.action,
        written.status_after,
        written.reason,
    ) == (
        'share_instance',
        instance_id(node, share),
        'creating',
        'given up',
        'error',
        'the back end reports a size of 4 GiB',
    )
    assert written.made_by.startswith('manila-share@node@alpha:')
    assert written.host == 'node@alpha#pool'
    assert 0 <= written.duration < 60


def test_rows_left_alone_are_not_logged(node, share):
    node.ask('extend', share, 5)
    rescue(node)
    assert decisions(node) == []


def test_logged_decision_contains_its_evidence(node, share):
    move(node, share, 'extend')
    rescue(node)
    (written,) = decisions(node)
    assert (written.action, written.status_after) == ('converged', 'available')
    assert written.evidence.startswith('get_share_status: (3, ')


def test_repeated_deletion_is_logged_as_such(node, share):
    move(node, share, 'reset_deleting')
    rescue(node)
    (written,) = decisions(node)
    assert (written.action, written.evidence) == (
        'repeated',
        'provisioning.delete_share_instance',
    )


# The pass


def test_startup_pass_ignores_later_moves(node, share):
    other = node.create(3)
    node.run()
    move(node, share, 'reset_migrating')
    began = node.db.utcnow()
    move(node, other, 'reset_migrating')
    backend = node.backend()
    assert backend.endpoints.reconciliation.request_pass(began)
    node.run()
    assert node.status(share) == 'error'
    assert node.status(other) == 'migrating'
    assert not backend.endpoints.reconciliation.request_pass(began)
    assert backend.endpoints.reconciliation.request_pass()
    node.run()
    assert node.status(other) == 'error'


def test_pass_without_stuck_rows_writes_nothing_and_calls_no_driver(
    node, share
):
    writes = []
    node.db.on_step = lambda name: writes.append(name)
    assert not node.backend().endpoints.reconciliation.request_pass()
    assert 'commit' not in writes
    assert len(writes) <= len(recovery.KINDS)
    assert questions(node) == 0


def test_many_rows_are_rescued_in_rounds(build_node):
    node = build_node(backends=['alpha'], work='\n[recovery]\nbatch = 3')
    node.register()
    shares = [node.create(1) for _ in range(10)]
    node.run()
    for share in shares:
        move(node, share, 'reset_migrating')
    assert node.backend().endpoints.reconciliation.request_pass()
    node.until(lambda: node.run() or not node.owed())
    assert {node.status(share) for share in shares} == {'error'}
    assert len(decisions(node)) == 10
    assert node.problems() == []


@on_sqlite
def test_hanging_probe_is_given_up(build_node):
    """The other calls return in time, however busy the machine is."""
    node = build_node(
        backends=['alpha'], work='\n[recovery]\nquestion_timeout = 1'
    )
    node.register()
    shares = [node.create(1) for _ in range(3)]
    node.run()
    for share in shares:
        move(node, share, 'extend')
    hung, ended = node.driver().get_share_status, threading.Event()
    victim = instance_id(node, shares[1])

    def get_share_status(share, share_server=None):
        if share['id'] == victim:
            ended.wait(TIMEOUT)
        return hung(share, share_server)

    node.driver().get_share_status = get_share_status
    rescue(node)
    assert [node.status(share) for share in shares] == [
        'available',
        'extending_error',
        'available',
    ]
    ended.set()
    assert [one.reason for one in decisions(node) if one.reason] == [
        'the back end did not reply within 1 s'
    ]


def test_hanging_probes_do_not_block_other_work(build_node):
    """There are as many as workers, and users do not notice."""
    node = build_node(backends=['alpha']).start()
    stuck = [node.created(1) for _ in range(3)]
    other = node.created(1)
    for share in stuck:
        move(node, share, 'extend')
    hang = node.driver().hang_next('get_share_status', None)
    assert node.backend().endpoints.reconciliation.run_pass() == 3
    assert hang.wait_reached()
    node.ask('extend', other, 2)
    node.until(lambda: shown(node, other) == ('available', 2))
    new = node.create(1)
    node.until(lambda: node.status(new) == 'available')
    assert {node.status(share) for share in stuck} == {'extending'}
    hang.release()
    node.until(
        lambda: {shown(node, share) for share in stuck} == {('available', 1)}
    )
    node.quiet()
    assert len(decisions(node)) == 3
    assert questions(node) == 3
    assert node.problems() == []


def test_row_that_raises_does_not_block_others(build_node):
    node = build_node(backends=['alpha'])
    node.register()
    shares = [node.create(1) for _ in range(5)]
    node.run()
    for share in shares:
        move(node, share, 'extend')
    node.driver().fail_next('get_share_status', 2, ZeroDivisionError())
    rescue(node)
    assert sorted(node.status(share) for share in shares) == [
        *['available'] * 3,
        *['extending_error'] * 2,
    ]
    assert node.owed() == []
    assert node.problems() == []


def test_unresponsive_back_end_is_not_called_repeatedly(build_node):
    node = build_node(
        backends=['alpha'],
        work='\n[recovery]\nquestion_timeout = 0.1\nunanswered_questions = 1',
    )
    node.register()
    shares = [node.create(1) for _ in range(3)]
    node.run()
    for share in shares:
        move(node, share, 'extend')
    answered = threading.Event()
    asked = []

    def get_share_status(share, share_server=None):
        asked.append(share['id'])
        answered.wait(TIMEOUT)
        return GOOD | {'size': 1}

    node.driver().get_share_status = get_share_status
    rescue(node)
    answered.set()
    assert len(asked) == 1
    assert sorted(node.status(share) for share in shares) == [
        'extending',
        'extending',
        'extending_error',
    ]
    assert len(node.owed()) == 2


# Exactly once


def test_row_with_work_is_not_rescued(node, share):
    node.ask('extend', share, 5)
    assert node.backend().endpoints.reconciliation.run_pass() == 0
    node.run()
    assert shown(node, share) == ('available', 5)


def test_two_passes_submit_one_rescue(node, share):
    move(node, share, 'reset_migrating')
    passes = node.backend().endpoints.reconciliation.run_pass
    assert [passes(), passes()] == [1, 0]
    node.run()
    assert node.messages() == [(UPDATE, UNKNOWN)]


def test_two_managers_of_one_back_end_rescue_once(build_node, node):
    second = build_node(backends=['alpha'])
    second.register()
    shares = [node.create(3) for _ in range(4)]
    node.run()
    for share, event in zip(
        shares,
        ('reset_creating', 'extend', 'shrink', 'reset_migrating'),
        strict=True,
    ):
        move(node, share, event)
    at_once = threading.Barrier(2)

    def rescue_at_once(one):
        at_once.wait()
        rescue(one)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for future in [
            pool.submit(rescue_at_once, one) for one in (node, second)
        ]:
            future.result()
    node.run()
    assert [node.status(share) for share in shares] == [
        'available',
        'available',
        'available',
        'error',
    ]
    assert node.messages() == [(UPDATE, UNKNOWN)]
    assert questions(node, second) == 3
    assert node.owed() == []
    assert node.problems() == []


@on_sqlite
def test_row_locked_by_another_manager_is_left_to_it(build_node):
    node, second = (
        build_node(backends=['alpha'], locked=True) for _ in range(2)
    )
    node.register()
    share = node.create(3)
    node.run()
    move(node, share, 'extend')
    assert node.backend().endpoints.reconciliation.run_pass() == 1
    rescued = f'rescue-{instance_id(node, share)}'
    with second.process.locks.try_lock(rescued) as held:
        assert held
        node.run()
        assert node.status(share) == 'extending'
        assert questions(node, second) == 0
    node.db.write(
        lambda session: session.run(sa.update(WORK).values(next_try_at=0.0))
    )
    node.run()
    assert node.status(share) == 'available'
    assert questions(node, second) == 1
    assert len(decisions(node)) == 1


def test_back_ends_rescue_only_their_own_rows(build_node):
    node = build_node()
    node.register()
    node.run()
    shares = [node.create(1) for _ in range(6)]
    node.run()
    for share in shares:
        move(node, share, 'reset_migrating')
    of_alpha = [
        share
        for share in shares
        if node.target(share).host == 'node@alpha#pool'
    ]
    assert 0 < len(of_alpha) < 6
    assert rescue(node) == len(of_alpha)
    assert {share for share in shares if node.status(share) == 'error'} == set(
        of_alpha
    )


# Reservations of abandoned work


@pytest.fixture
def abandoned(node, share):
    """An extension by 4 GiB whose worker died before the driver call."""
    node.ask('extend', share, 7)
    node.scheduler.runners[0].step()
    node.db.write(
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


def test_extension_that_did_not_happen_releases_quota(node, abandoned):
    node.run()
    assert shown(node, abandoned) == ('available', 3)
    assert node.messages() == [(EXTEND, UNKNOWN)]  # it was accepted
    assert node.problems() == []


def test_extension_that_happened_commits_quota(node, abandoned):
    says(node, GOOD | {'size': 7})
    node.run()
    assert shown(node, abandoned) == ('available', 7)
    assert node.messages() == []
    assert [
        problem for problem in node.problems() if 'should be 7' not in problem
    ] == []


@pytest.mark.parametrize(
    'error',
    [
        exception.ShareBackendException(msg='broken'),
        RuntimeError('odd'),
        NotImplementedError,
    ],
)
def test_extension_with_unknown_outcome_releases_quota(node, abandoned, error):
    says(node, error)
    node.run()
    assert node.status(abandoned) == 'extending_error'
    assert len(node.messages()) == 1
    assert node.problems() == []


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
def test_reset_status_of_abandoned_work_releases_its_reservations(
    node, abandoned, status
):
    node.operations.reset_status(CTX, instance_id(node, abandoned), status)
    node.run()
    rescue(node)
    assert node.problems() == []


@pytest.mark.parametrize('verb', ['force_delete', 'reset_and_delete'])
def test_deletion_follows_abandoned_work(node, abandoned, verb):
    if verb == 'force_delete':
        node.ask('force_delete', abandoned)
    else:
        node.operations.reset_status(
            CTX, instance_id(node, abandoned), 'error'
        )
        node.ask('delete', abandoned)
    node.run()
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert [call.method for call in node.driver().calls].count(
        'delete_share'
    ) == 1
    assert node.problems() == []


def test_force_delete_stays_forced_after_a_rescue(node, abandoned):
    node.ask('force_delete', abandoned)
    node.driver().fail_next('delete_share', None)
    node.run()
    assert node.rows(sa.text('SELECT id FROM shares')) == []


# Deferred deletion


@pytest.fixture
def deferring(build_node):
    node = build_node(
        backends=['alpha'], default='is_deferred_deletion_enabled = true'
    )
    node.register()
    node.run()
    return node


def used(node):
    return node.db.read(
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


def test_deferred_deletion_frees_quota_at_once(deferring):
    share = deferring.create(3)
    deferring.run()
    deferring.ask('delete', share)
    assert deferring.status(share) == InstanceStatus.DEFERRED_DELETING
    assert used(deferring) == {'shares': 0, 'gigabytes': 0}
    deferring.run()
    assert deferring.rows(sa.text('SELECT id FROM shares')) == []
    assert used(deferring) == {'shares': 0, 'gigabytes': 0}
    assert deferring.problems() == []


def test_deferred_deletion_is_retried_until_it_succeeds(build_node, deferring):
    node = deferring
    second = build_node(backends=['alpha'])
    shares = [node.create(3) for _ in range(2)]
    node.run()
    node.driver().fail_next('delete_share', None)
    for share in shares:
        node.ask('delete', share)
    node.run()
    assert {node.status(share) for share in shares} == {
        InstanceStatus.ERROR_DEFERRED_DELETING
    }
    assert node.problems() == []
    retries = [one.backend().deferred_deletion.retry for one in (node, second)]
    assert [retry() for retry in retries] == [2, 0]
    node.run()
    assert {node.status(share) for share in shares} == {
        InstanceStatus.ERROR_DEFERRED_DELETING
    }
    node.driver().faults.clear()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda retry: retry(), retries))
    node.run()
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert used(node) == {'shares': 0, 'gigabytes': 0}
    assert node.problems() == []


def test_deferred_deletion_without_work_is_repeated(deferring):
    node = deferring
    share = node.create(3)
    node.run()
    node.ask('delete', share)
    node.db.write(lambda session: session.run(sa.delete(WORK)))
    assert rescue(node) == 1
    assert node.rows(sa.text('SELECT id FROM shares')) == []
    assert used(node) == {'shares': 0, 'gigabytes': 0}
    assert node.problems() == []


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
def test_deferred_deletion_refuses_further_requests(deferring, verb, args):
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
