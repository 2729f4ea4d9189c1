import concurrent.futures

import pytest

from manila_lite import exception
from manila_lite.share.drivers.dummy import faults


class Machine:
    """An object with instrumented methods; `done` records their work."""

    def __init__(self, **options):
        self.faults = faults.FaultInjector(
            faults.instrumented_methods(type(self)), **options
        )
        self.done = []

    @faults.instrumented
    def work(self, subject, end='end'):
        self.done.append('start')
        self.faults.midway()
        self.done.append(end)
        return subject['id']

    @faults.instrumented
    def outer(self, subject):
        self.work(subject)
        self.faults.midway()
        self.done.append('outer')

    def plain(self):
        return 'not observed'


SUBJECT = {'id': 'subject'}


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def elsewhere():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        yield pool


def test_without_faults_the_work_is_done(machine):
    assert machine.work(SUBJECT) == 'subject'
    assert machine.done == ['start', 'end']


@pytest.mark.parametrize(
    'order, done',
    [
        ('fail_next', []),
        ('half_fail_next', ['start']),
        ('lose_reply_next', ['start', 'end']),
    ],
)
def test_injected_fault_occurs_at_its_point(machine, order, done):
    getattr(machine.faults, order)('work', times=2)
    for _ in range(2):
        machine.done.clear()
        with pytest.raises(exception.ShareBackendException, match='work'):
            machine.work(SUBJECT)
        assert machine.done == done
    machine.work(SUBJECT)


def test_error_can_be_chosen(machine):
    machine.faults.fail_next('work', error=KeyError('chosen'))
    with pytest.raises(KeyError, match='chosen'):
        machine.work(SUBJECT)


def test_faults_occur_in_order(machine):
    machine.faults.fail_next('work', error=KeyError())
    machine.faults.lose_reply_next('work', error=IndexError())
    with pytest.raises(KeyError):
        machine.work(SUBJECT)
    with pytest.raises(IndexError):
        machine.work(SUBJECT)


def test_permanent_fault_stays_until_cleared(machine):
    machine.faults.fail_next('work', times=None)
    for _ in range(3):
        with pytest.raises(exception.ShareBackendException):
            machine.work(SUBJECT)
    machine.faults.clear()
    machine.work(SUBJECT)


def test_half_of_a_method_is_not_half_of_what_it_calls(machine):
    machine.faults.half_fail_next('outer')
    with pytest.raises(exception.ShareBackendException):
        machine.outer(SUBJECT)
    assert machine.done == ['start', 'end']


@pytest.mark.parametrize('after_work, done', [(False, []), (True, ['start', 'end'])])
def test_hanging_call_continues_when_released(machine, elsewhere, after_work, done):
    hang = machine.faults.hang_next('work', after_work=after_work)
    call = elsewhere.submit(machine.work, SUBJECT)
    assert hang.wait_reached()
    assert machine.done == done
    assert not call.done()
    hang.release()
    assert call.result(timeout=30) == 'subject'
    assert machine.done == ['start', 'end']


def test_only_the_given_number_of_calls_hangs(machine, elsewhere):
    hang = machine.faults.hang_next('work')
    hanging = elsewhere.submit(machine.work, SUBJECT)
    assert hang.wait_reached()
    assert elsewhere.submit(machine.work, SUBJECT).result(30) == 'subject'
    assert not hanging.done()
    hang.release()
    assert hanging.result(30) == 'subject'


def test_clearing_releases_all_hanging_calls(machine, elsewhere):
    first = machine.faults.hang_next('work')
    always = machine.faults.hang_next('work', times=None)
    calls = [elsewhere.submit(machine.work, SUBJECT) for _ in range(3)]
    assert first.wait_reached()
    assert always.wait_reached()
    machine.faults.clear()
    assert {call.result(30) for call in calls} == {'subject'}


def test_hang_without_calls_times_out(machine):
    assert not machine.faults.hang_next('work').wait_reached(timeout=0)


@pytest.mark.parametrize(
    'order', ['fail_next', 'half_fail_next', 'lose_reply_next', 'hang_next']
)
@pytest.mark.parametrize('method', ['wrok', 'plain'])
def test_fault_for_an_unknown_method_is_refused(machine, order, method):
    with pytest.raises(ValueError, match='outer, work'):
        getattr(machine.faults, order)(method)


def test_calls_are_recorded_with_their_subject(machine):
    machine.faults.fail_next('outer')
    with pytest.raises(exception.ShareBackendException):
        machine.outer(SUBJECT)
    machine.outer({'id': 'other'})
    assert machine.faults.calls == [
        ('outer', 'subject'),
        ('outer', 'other'),
        ('work', 'other'),
    ]


def test_recorded_calls_are_bounded(machine, monkeypatch):
    monkeypatch.setattr(faults, 'MAX_RECORDED_CALLS', 2)
    machine = Machine()
    for each in 'abc':
        machine.work({'id': each})
    assert [call.subject_id for call in machine.faults.calls] == ['b', 'c']


def test_methods_are_delayed_as_configured():
    slept = []
    machine = Machine(delay=2.0, delays={'outer': 0.5}, sleep=slept.append)
    machine.outer(SUBJECT)
    assert slept == [0.5, 2.0]


def test_no_delay_is_no_sleep():
    slept = []
    Machine(delay=2.0, delays={'work': 0.0}, sleep=slept.append).work(SUBJECT)
    assert slept == []
