"""The version history is complete, and versions are parsed."""

from hypothesis import given, strategies as st
import pytest

from manila_lite import exception
from manila_lite.api import versions
from tests.support import reference

minors = st.integers(versions.MIN, versions.MAX)
windows = st.tuples(minors, minors).map(
    lambda ends: versions.Window(min(ends), max(ends))
)


def test_history_names_each_version_once_and_in_order():
    assert [minor for minor, _ in versions.HISTORY] == list(
        range(versions.MIN, versions.MAX + 1)
    )
    texts = [text for _, text in versions.HISTORY]
    assert len(set(texts)) == len(texts)
    assert all(text.endswith('.') for text in texts)


def test_versions_are_the_published_ones():
    published = [row['version'] for row in reference.table('microversions.csv')]
    assert [versions.text(minor) for minor, _ in versions.HISTORY] == published


@given(minors)
def test_every_version_served_is_read_back(minor):
    assert versions.parse(versions.text(minor)) == minor


@pytest.mark.parametrize(
    'text',
    [
        '',
        'latest',
        '2',
        '2.',
        '.5',
        '2.05',
        '02.5',
        '2.5.1',
        ' 2.5',
        '2.5\n',
        'v2.5',
        '2.-1',
        '2,5',
        '2.x',
        '٢.٥',
        '0.1',
        '2.5 ',
        '+2.5',
    ],
)
def test_malformed_version_is_refused(text):
    with pytest.raises(exception.InvalidVersionHeader):
        versions.parse(text)


@pytest.mark.parametrize('text', ['2.100', '1.0', '3.0', '2.' + '9' * 5000, '99.99'])
def test_version_outside_the_range_is_not_served(text):
    with pytest.raises(exception.VersionNotServed) as caught:
        versions.parse(text)
    assert '2.0' in caught.value.msg
    assert '2.99' in caught.value.msg


def test_open_ends_of_a_window_reach_the_first_and_the_last():
    assert versions.window() == versions.ALWAYS
    assert versions.window(since='2.7') == (7, versions.MAX)
    assert versions.window(until='2.6') == (versions.MIN, 6)


@pytest.mark.parametrize(
    'text, window',
    [(None, None), ('2.11-2.55', (11, 55)), ('2.57-', (57, versions.MAX))],
)
def test_span_is_read(text, window):
    assert versions.span(text) == window


@given(windows, minors)
def test_window_includes_both_ends(window, minor):
    assert (minor in window) == (minor in range(window.since, window.until + 1))


@given(st.lists(windows, max_size=5))
def test_overlap_means_a_version_in_two_windows(several):
    seen = [
        minor for window in several for minor in range(window.since, window.until + 1)
    ]
    assert versions.overlapping(several) == (len(seen) != len(set(seen)))
