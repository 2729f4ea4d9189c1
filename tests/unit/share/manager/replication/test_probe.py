"""Questions about replicas to a driver that is slow, or hangs."""

import threading

import pytest

from manila_lite import exception
from manila_lite.share.manager.driver_probe import BackEndAway
from manila_lite.share.manager.driver_probe import Questions
from manila_lite.share.manager.replication.probe import ReplicaQuestions
from manila_lite.share.manager.replication.probe import Subject
from manila_lite.share.manager.replication.probe import Unanswered

LONG, SHORT = 30.0, 0.4
ONE = Subject('one', 0, 'state')
OTHER = Subject('other', 0, 'state')


class Slow:
    """A method that answers when it is told to."""

    def __init__(self, answer='in_sync'):
        self.answer = answer
        self.calls = 0
        self.may_end = threading.Event()
        self.has_ended = threading.Event()

    def __call__(self, *args):
        self.calls += 1
        self.may_end.wait()
        return self.answer

    def end(self, questions, subject=ONE):
        """Have it answer, and wait until that is known."""
        self.may_end.set()
        asked = questions._asked[subject.replica_id]
        while asked.said is None:
            threading.Event().wait(0.001)


@pytest.fixture
def slow():
    slow = Slow()
    yield slow
    slow.may_end.set()


@pytest.fixture
def questions():
    return ReplicaQuestions(Questions(SHORT, 2))


def raising(*args):
    raise exception.ShareBackendException(msg='it is on fire')


def patient():
    return ReplicaQuestions(Questions(LONG, 2))


def test_an_answer_is_told_as_it_is():
    said = patient().ask(ONE, lambda *args: args, 1, 2)
    assert said == ((1, 2), None)


def test_an_error_is_told_too():
    said = patient().ask(ONE, raising)
    assert isinstance(said.error, exception.ShareBackendException)


def test_a_question_that_hangs_is_given_up(questions, slow):
    with pytest.raises(Unanswered) as error:
        questions.ask(ONE, slow)
    assert not error.value.overdue


def test_a_replica_is_not_asked_about_twice_at_a_time(questions, slow):
    for overdue in (False, True, True, True):
        with pytest.raises(Unanswered) as error:
            questions.ask(ONE, slow)
        assert error.value.overdue is overdue
    assert slow.calls == 1
    assert questions.ask(OTHER, lambda: 'well').value == 'well'


def test_a_late_answer_counts_for_the_same_question(questions, slow):
    with pytest.raises(Unanswered):
        questions.ask(ONE, slow)
    slow.end(questions)
    assert questions.ask(ONE, raising).value == 'in_sync'
    assert questions.ask(ONE, raising).error  # asked anew


@pytest.mark.parametrize(
    'later', [ONE._replace(round=1), ONE._replace(what='snapshot')]
)
def test_a_late_answer_to_another_question_is_dropped(questions, slow, later):
    with pytest.raises(Unanswered):
        questions.ask(ONE, slow)
    slow.end(questions)
    assert questions.ask(later, lambda: 'asked').value == 'asked'
    assert questions.ask(ONE, lambda: 'anew').value == 'anew'


def test_so_many_may_hang_and_no_more_are_asked(questions, slow):
    for subject in (ONE, OTHER):
        with pytest.raises(Unanswered):
            questions.ask(subject, slow)
    third = Subject('third', 0, 'state')
    for _ in range(2):
        with pytest.raises(BackEndAway):
            questions.ask(third, slow)
    slow.end(questions)
    assert questions.ask(ONE, raising).value == 'in_sync'


def test_who_is_kept_waiting_is_told_once(slow):
    told = []

    def late():
        told.append(1)
        slow.may_end.set()

    questions = ReplicaQuestions(Questions(LONG, 2))
    assert questions.ask(ONE, slow, late=late).value == 'in_sync'
    assert told == [1]
    assert questions.ask(ONE, lambda: 'quick', late=late).value == 'quick'
    assert told == [1]
