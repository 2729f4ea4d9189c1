import pytest

from manila_lite.scheduler import pools
from manila_lite.scheduler.pools import Capabilities
from tests.unit.scheduler.builders import pool


@pytest.mark.parametrize(
    'host, service_host, backend, name',
    [
        ('alpha@gold#one', 'alpha@gold', 'gold', 'one'),
        ('alpha@gold', 'alpha@gold', 'gold', ''),
        ('alpha@gold#a#b@c', 'alpha@gold', 'gold', 'a#b@c'),
    ],
)
def test_host_has_three_parts(host, service_host, backend, name):
    candidate = pool(host=host)
    assert candidate.service_host == service_host
    assert candidate.backend == backend
    assert candidate.name == name


def test_question_about_a_report_is_answered_once():
    asked = []

    def answer(value):
        asked.append(value)
        return value

    reported = Capabilities({'tier': 'gold'})
    assert [reported.conclude('one', answer, 1) for _ in range(3)] == [1] * 3
    assert reported.conclude('two', answer, 2) == 2
    assert asked == [1, 2]


def test_answers_about_a_report_are_bounded():
    reported = Capabilities({'tier': 'gold'})
    for question in range(3 * pools.MAX_CONCLUSIONS):
        assert reported.conclude(question, str, question) == str(question)
        assert len(reported._conclusions) <= pools.MAX_CONCLUSIONS


def test_reports_answer_for_themselves():
    one, same = Capabilities({'a': 1}), Capabilities({'a': 1})
    assert one == same
    assert one.conclude('question', str, 'one') == 'one'
    assert same.conclude('question', str, 'same') == 'same'
