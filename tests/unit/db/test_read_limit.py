"""The time limit of reads, on every database."""

from oslo_db import exception as db_exc
import pytest
import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import read_limit
from tests.support import sampling

pytestmark = sampling.dialects


SLOW = sa.text(
    'WITH RECURSIVE n (i) AS '
    '(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) '
    'SELECT count(*) FROM n a, n b, n c WHERE a.i + b.i + c.i < 0'
)
TAKES_A_WHILE = sa.text(str(SLOW).replace(', n c', '').replace(' + c.i', ''))
QUICK = sa.text('SELECT 1')


def value(session, *statements):
    return [session.value(statement) for statement in statements][-1]


def test_slow_read_is_ended(db):
    with (
        read_limit.limit_reads(0.2),
        pytest.raises(exception.ReadTimeLimitExceeded, match=r'0\.2 s'),
    ):
        db.read(value, QUICK, SLOW)


def test_connection_of_a_slow_read_can_be_used_again(db):
    for _ in range(3):
        with (
            read_limit.limit_reads(0.05),
            pytest.raises(exception.ReadTimeLimitExceeded),
        ):
            db.read(value, SLOW)
        assert db.read(value, QUICK) == 1


def test_limit_applies_to_reads_of_its_context_only(db):
    with read_limit.limit_reads(0.001):
        with pytest.raises(exception.ReadTimeLimitExceeded):
            db.read(value, SLOW)
        with read_limit.limit_reads(0):
            assert db.read(value, TAKES_A_WHILE) == 0
        assert db.write(value, TAKES_A_WHILE) == 0
    assert db.read(value, TAKES_A_WHILE) == 0


def test_read_within_the_limit_gives_its_result(db):
    with read_limit.limit_reads(20):
        assert db.read(value, QUICK, TAKES_A_WHILE, QUICK) == 1


def test_other_errors_are_not_reworded(db):
    with (
        read_limit.limit_reads(20),
        pytest.raises((db_exc.DBError, sa.exc.DBAPIError), match='nowhere'),
    ):
        db.read(value, sa.text('SELECT x FROM nowhere'))
