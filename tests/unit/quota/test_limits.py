"""The arithmetic of limits."""

import functools
import types

import pytest

from manila_lite import exception
from manila_lite.conf import quota as options
from manila_lite.quota import limits
from tests.support import reference


def test_resources_and_versions_match_the_published_table():
    published = [
        (row['field'], row['since'])
        for row in reference.table('response-fields.csv')
        if row['resource'] == 'quota set' and row['view'] == 'show and update'
    ]
    assert [(one.name, one.since) for one in limits.RESOURCES] == published


def test_resources_of_share_types_match_the_published_table():
    published = tuple(
        row['field']
        for row in reference.table('response-fields.csv')
        if row['resource'] == 'quota set'
        and row['view'] == 'show and update'
        and 'absent for share type' not in row['notes']
    )
    assert published == limits.NAMES_PER_TYPE


def test_every_resource_has_an_option():
    defaults = {option.name: option.default for option in options.OPTS}
    group = types.SimpleNamespace(**defaults)
    assert limits.from_options(group) == {name: defaults[name] for name in limits.NAMES}


def test_later_layers_override_earlier_ones():
    found = limits.effective_limits(
        {'shares': 1, 'gigabytes': 1, 'backups': 1},
        {'gigabytes': 2, 'backups': 2},
        {'backups': -1},
    )
    assert list(found) == list(limits.NAMES)
    assert found['shares'] == 1
    assert found['gigabytes'] == 2
    assert found['backups'] == -1
    assert found['snapshots'] == limits.UNLIMITED


@pytest.mark.parametrize(
    'value, number',
    [(0, 0), (-1, -1), (7, 7), ('7', 7), ('-1', -1), (2**31 - 1, 2**31 - 1)],
)
def test_integers_are_limits(value, number):
    assert limits.parse({'shares': value}) == {'shares': number}


@pytest.mark.parametrize(
    'value', [-2, '-2', 2**31, 1.0, True, None, '', 'x', '1.5', [1], {}]
)
def test_other_values_are_refused(value):
    with pytest.raises(exception.InvalidInput, match='shares'):
        limits.parse({'shares': value})


def test_unknown_resources_are_refused_by_name():
    with pytest.raises(exception.InvalidInput, match='cheese, wine'):
        limits.parse({'wine': 1, 'shares': 1, 'cheese': 2})
    with pytest.raises(exception.InvalidInput, match='share_networks'):
        limits.parse({'share_networks': 1}, limits.NAMES_PER_TYPE)


@pytest.mark.parametrize(
    'limit, ceiling, fits',
    [
        (5, 5, True),
        (6, 5, False),
        (-1, 5, False),
        (5, -1, True),
        (-1, -1, True),
        (0, 0, True),
    ],
)
def test_subscope_needs_force_to_exceed_the_project(limit, ceiling, fits):
    check = functools.partial(
        limits.check, {'shares': limit}, used={}, ceilings={'shares': ceiling}
    )
    check(force=True)
    if fits:
        check()
    else:
        with pytest.raises(exception.InvalidInput, match='project, 5'):
            check()


@pytest.mark.parametrize(
    'limit, used, fits', [(4, 4, True), (3, 4, False), (0, 0, True), (-1, 4, True)]
)
def test_limit_below_usage_needs_force(limit, used, fits):
    limits.check({'shares': limit}, used={'shares': used}, force=True)
    if fits:
        limits.check({'shares': limit}, used={'shares': used})
    else:
        with pytest.raises(exception.InvalidInput, match='in use, 4'):
            limits.check({'shares': limit}, used={'shares': used})
