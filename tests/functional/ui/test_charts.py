"""The charts of the page, and the samples behind them."""

import re

import pytest

from manila_lite.api.ui import charts
from manila_lite.db.queries.services import samples

DAY = samples.DAY
POOL = 'node@alpha#pool'


def record(cloud, resolution, figures):
    """Write the samples of the last slots, the newest last."""
    last = cloud.db.read(samples.find_missing)[resolution]
    for place, one in enumerate(figures):
        slot = last - len(figures) + 1 + place
        assert cloud.db.write(samples.record, resolution, slot, one)


def test_charts_show_samples_in_words_lines_and_a_table(cloud, root):
    record(cloud, DAY, [{'': {'queued': value}} for value in (3, 7, 5)])
    page = root.open('/ui/charts?span=year')
    assert 'From 3.0 to 7.0, last 5.0.' in page.text
    for tag in ('title', 'desc', 'path', 'table'):
        assert [name for name, _ in page.tags if name == tag]
    assert page.text.count('7.0') >= 2


def test_charts_say_on_which_day_a_pool_is_full(cloud, root):
    record(
        cloud,
        DAY,
        [{'': {}, POOL: {'total': 100.0, 'used': used}} for used in (10.0, 20.0, 30.0)],
    )
    text = root.open(f'/ui/charts?span=year&pool={POOL.replace("#", "%23")}').text
    assert 'At the present rate of 10.0 GiB a day it is full on ' in text


@pytest.mark.parametrize(
    'used, shown',
    [
        ([10.0, 20.0, 30.0], r'20\d\d-\d\d-\d\d'),
        ([30.0, 30.0], 'not at this rate'),
        ([30.0, 100.0], 'now'),
        ([30.0], 'not known'),
    ],
)
def test_list_of_pools_says_when_each_is_full(cloud, root, used, shown):
    record(cloud, DAY, [{'': {}, POOL: {'total': 100.0, 'used': one}} for one in used])
    text = root.open('/ui/capacity').text
    row = text[text.index(POOL) :].partition('node@beta')[0]
    assert re.search(rf'{shown}\s*$', row), row


@pytest.mark.parametrize('query', ['', '?span=x&pool=x', '?span=year&pool=%20'])
def test_charts_without_samples_say_so(root, query):
    text = root.open(f'/ui/charts{query}').text
    assert 'Nothing has been measured yet.' in text


@pytest.mark.parametrize(
    'used, expected',
    [
        ([50.0, 40.0], 'does not fill up'),
        ([50.0, 50.0], 'does not fill up'),
        ([50.0, 100.0], 'It is full.'),
        ([50.0], 'A forecast needs samples'),
        ([50.0, 60.0], 'of 10.0 GiB a day it is full on 1970-01-06.'),
    ],
)
def test_forecast_follows_the_line(used, expected):
    found = [(float(place * DAY), value) for place, value in enumerate(used)]
    assert expected in charts.forecast(found, 100.0)


def test_gap_between_samples_is_a_gap_of_the_line():
    found = [(0.0, 1.0), (300.0, 2.0), (3000.0, 1.0), (3300.0, 1.0)]
    chart = charts.draw('x', 'x', '', '', found, 0.0, 3300.0)
    assert len(chart.paths) == 2


def test_long_series_has_a_short_table_that_ends_with_the_last_value():
    found = [(float(place), float(place)) for place in range(2016)]
    chart = charts.draw('x', 'x', '', '', found, 0.0, 2016.0)
    assert len(chart.rows) <= charts.MOST_ROWS
    assert chart.rows[-1][1] == 2015.0
