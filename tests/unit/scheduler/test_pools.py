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


def test_result_about_a_report_is_computed_once_per_key():
    calls = []

    def compute(value):
        calls.append(value)
        return value

    reported = Capabilities({'tier': 'gold'})
    assert [reported.cached('one', compute, 1) for _ in range(3)] == [1] * 3
    assert reported.cached('two', compute, 2) == 2
    assert calls == [1, 2]


def test_cache_of_a_report_is_bounded():
    reported = Capabilities({'tier': 'gold'})
    for key in range(3 * pools.MAX_CACHED):
        assert reported.cached(key, str, key) == str(key)
        assert len(reported._cache) <= pools.MAX_CACHED


def test_equal_reports_share_no_cache():
    one, same = Capabilities({'a': 1}), Capabilities({'a': 1})
    assert one == same
    assert one.cached('key', str, 'one') == 'one'
    assert same.cached('key', str, 'same') == 'same'
