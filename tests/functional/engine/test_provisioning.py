"""What becomes of a share when its back end succeeds, fails or refuses."""

import pytest
import sqlalchemy as sa

from manila_lite import exception
from tests.functional.engine.service_process import CTX
from tests.functional.engine.service_process import SHARE

pytestmark = pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)


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


def outcome(house, share):
    found = house.target(share)
    return found.status, found.size


def exports(house):
    return [
        row.path
        for row in house.rows(
            sa.text(
                'SELECT path FROM share_instance_export_locations '
                'ORDER BY path'
            )
        )
    ]


def failing(house, method, error):
    """Have the driver raise this, once."""
    house.driver().fail_next(method, error=error)


# Creation


def with_detail(detail_data):
    error = RuntimeError('half of it is there')
    error.detail_data = detail_data
    return error


def test_a_created_share_is_where_the_driver_says(house, share):
    assert outcome(house, share) == ('available', 3)
    assert len(exports(house)) == 2
    assert house.messages() == []


@pytest.mark.parametrize(
    'detail_data, paths',
    [
        (None, []),
        ('text', []),
        ({}, []),
        ({'export_locations': None}, []),
        ({'export_locations': ['1.2.3.4:/a']}, ['1.2.3.4:/a']),
        (
            {
                'export_locations': [
                    {'path': '1.2.3.4:/b', 'is_admin_only': True}
                ]
            },
            ['1.2.3.4:/b'],
        ),
        ({'export_locations': [{'paths': 'what is this'}]}, []),
        ({'export_locations': 7}, []),
    ],
    ids=str,
)
def test_a_failed_creation_shows_what_exists_all_the_same(
    house, detail_data, paths
):
    failing(house, 'create_share', with_detail(detail_data))
    share = house.create(3)
    house.run()
    assert outcome(house, share) == ('error', 3)
    assert exports(house) == paths
    assert house.messages() == [('002', '001')]
    assert house.owed() == []
    assert house.problems() == []


# Resizing

BROKEN = exception.ShareBackendException(msg='broken')
FULL = exception.ShareShrinkingPossibleDataLoss(share_id='x')


@pytest.mark.parametrize(
    'verb, size, error, status, message',
    [
        ('extend', 5, BROKEN, 'extending_error', ('008', '015')),
        (
            'extend',
            5,
            NotImplementedError(),
            'extending_error',
            ('008', '015'),
        ),
        ('shrink', 1, BROKEN, 'shrinking_error', ('009', '019')),
        ('shrink', 1, FULL, 'available', ('009', '018')),
        ('shrink', 1, NotImplementedError(), 'available', ('009', '019')),
    ],
)
def test_a_failed_resize_is_told_and_gives_back(
    house, share, verb, size, error, status, message
):
    failing(house, f'{verb}_share', error)
    house.ask(verb, share, size)
    house.run()
    assert outcome(house, share) == (status, 3)
    assert house.messages() == [message]
    assert house.problems() == []


@pytest.mark.parametrize('verb, size', [('extend', 5), ('shrink', 1)])
def test_a_resize_is_counted(house, share, verb, size):
    house.ask(verb, share, size)
    house.run()
    assert outcome(house, share) == ('available', size)
    assert house.messages() == []
    assert house.problems() == []


# Deletion


def test_a_share_the_back_end_has_lost_is_deleted(house, share):
    failing(
        house, 'delete_share', exception.ShareResourceNotFound(share_id='x')
    )
    house.ask('delete', share)
    house.run()
    assert house.rows(sa.select(SHARE)) == []
    assert house.messages() == []


def test_a_failed_deletion_is_told_and_still_counts(house, share):
    failing(house, 'delete_share', BROKEN)
    house.ask('delete', share)
    house.run()
    assert outcome(house, share) == ('error_deleting', 3)
    assert house.messages() == [('007', '001')]
    assert house.problems() == []


def test_a_forced_deletion_bears_with_the_back_end(house, share):
    failing(house, 'delete_share', BROKEN)
    house.ask('force_delete', share)
    house.run()
    assert house.rows(sa.select(SHARE)) == []
    assert house.messages() == []
    assert house.owed() == []


def test_a_forced_deletion_that_a_decree_overtook_ends(house, share):
    """It fails, and what it was about is not being deleted any more."""

    def delete_share(*args, **kwargs):
        house.operations.reset_status(
            CTX, house.target(share).instance_id, 'error'
        )
        raise BROKEN

    house.driver().delete_share = delete_share
    house.ask('force_delete', share)
    house.run()
    assert outcome(house, share) == ('error', 3)
    assert house.owed() == []
    assert house.problems() == []


# Work that is out of date


@pytest.mark.parametrize(
    'verb, args, facts',
    [
        ('extend', [5], {}),
        ('extend', [5], {'force': True}),
        ('shrink', [1], {}),
        ('delete', [], {}),
        ('force_delete', [], {}),
    ],
)
@pytest.mark.parametrize('step', [0, 1])
def test_what_a_decree_overtook_is_not_carried_out(
    house, share, verb, args, facts, step
):
    before = len(house.driver().calls)
    house.ask(verb, share, *args, **facts)
    for _ in range(step):
        house.scheduler.runners[0].step()
    house.operations.reset_status(
        CTX, house.target(share).instance_id, 'error'
    )
    house.run()
    assert outcome(house, share) == ('error', 3)
    assert house.driver().calls[before:] == []
    assert house.messages() == []
    assert house.owed() == []
    assert house.problems() == []
