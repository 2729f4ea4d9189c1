"""Any reply of a driver about its progress is made the best of."""

import datetime
import json

import pytest

from manila_lite.share.manager.servers.migration_checks import (
    MAX_DETAILS,
    read_progress,
)


@pytest.mark.parametrize(
    'total, percent',
    [
        (30, 30),
        ('30', 30),
        (99.9, 99),
        (-1, 0),
        (400, 100),
        (None, None),
        ('much', None),
        ([], None),
        (float('inf'), None),
        (float('nan'), None),
    ],
)
def test_percentage_is_limited_or_unknown(total, percent):
    assert read_progress({'total_progress': total}) == (percent, '{}')


@pytest.mark.parametrize('reply', [None, 30, [('total_progress', 30)], ''])
def test_reply_that_is_no_dict_is_unknown(reply):
    assert read_progress(reply) == (None, None)


def test_details_are_the_other_keys():
    at = datetime.datetime(2026, 1, 2)
    found = read_progress(
        {'total_progress': 5, 'phase': 'copy', 'bytes': 7, 3: None, 'at': at}
    )
    assert json.loads(found.details) == {
        'phase': 'copy',
        'bytes': 7,
        '3': None,
        'at': '2026-01-02T00:00:00',
    }


def test_secrets_in_details_are_masked():
    found = read_progress({'command': 'copy --password=sesame', 'token': 'x'})
    assert json.loads(found.details) == {
        'command': 'copy --password=***',
        'token': '***',
    }


@pytest.mark.parametrize('value', ['x' * MAX_DETAILS, 2**70])
def test_details_that_cannot_be_kept_are_left_out(value):
    assert read_progress({'total_progress': 5, 'x': value}) == (5, None)
