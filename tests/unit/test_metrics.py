"""What a process counts, before it is text."""

import threading

import pytest

from manila_lite import metrics


def test_counter_counts_by_label_values():
    counter = metrics.Counter('tried_total', 'Attempts.', 'kind')
    counter.increment('first')
    counter.increment('first')
    counter.increment('second')
    assert counter.family().samples == {('first',): 2, ('second',): 1}


def test_counter_without_labels_starts_at_zero():
    """Else Prometheus would not see its first increase."""
    assert metrics.Counter('lost_total', 'Losses.').family().samples == {(): 0}


def test_gauge_is_what_is_in_progress():
    gauge = metrics.Gauge('calls', 'Calls.', 'method')
    gauge.enter('create')
    gauge.enter('create')
    gauge.leave('create')
    assert gauge.family().samples == {('create',): 1}


@pytest.mark.parametrize(
    'seconds, counts',
    [(0.05, (1, 0, 0)), (0.1, (1, 0, 0)), (0.5, (0, 1, 0)), (9, (0, 0, 1))],
)
def test_duration_is_counted_at_the_first_bound_it_does_not_exceed(seconds, counts):
    found = metrics.Histogram('lasted_seconds', 'Time.', bounds=(0.1, 1))
    found.observe(seconds)
    assert found.family().samples == {
        (): metrics.Distribution((0.1, 1), counts, seconds)
    }


def test_no_event_of_several_threads_is_lost():
    counter = metrics.Counter('tried_total', 'Attempts.', 'kind')

    def count():
        for _ in range(10_000):
            counter.increment('same')

    threads = [threading.Thread(target=count) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert counter.family().samples == {('same',): 40_000}


def test_names_follow_the_conventions_of_prometheus():
    for metric in metrics.COUNTED:
        assert metric.name.endswith('_total') == (metric.kind == 'counter')
        if metric.kind == 'histogram':
            assert metric.name.endswith('_seconds')
