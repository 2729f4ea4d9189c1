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
    there = pool(host=host)
    assert there.service_host == service_host
    assert there.backend == backend
    assert there.name == name
