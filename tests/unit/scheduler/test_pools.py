import pytest

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
