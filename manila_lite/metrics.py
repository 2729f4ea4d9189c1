"""What this process counts about itself, and the form of all metrics.

Counting is an addition in a dictionary, because every request pays for it.
The text for Prometheus, with its library, is made where it is asked for.
Label values come from our own tables, never from a client: their number is
bounded, and they contain no ids.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
import typing

PREFIX = 'manila_lite_'

Labels = tuple[str, ...]


class Distribution(typing.NamedTuple):
    """Observations: the number up to each bound, without a bound, the sum."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


class Family(typing.NamedTuple):
    """A metric with the samples that it has now, by label values."""

    metric: 'Metric'
    samples: Mapping[Labels, typing.Any]


class Metric:
    """The name, meaning and labels of a metric; a gauge unless derived.

    Names follow Prometheus' conventions: base units, `_total` for counters.
    """

    kind = 'gauge'

    def __init__(self, name: str, help: str, *labels: str):
        self.name = PREFIX + name
        self.help = help
        self.labels = labels

    def of(self, samples: Mapping[typing.Any, float]) -> Family:
        """Return the metric with samples that were read elsewhere."""
        return Family(self, samples)


class _Counted(Metric):
    """A metric whose samples are kept here, in a list for each.

    There is no lock: an interpreter with a global lock switches threads at
    calls, and back at jumps, so not within an addition to an item of a list.
    """

    def __init__(self, name: str, help: str, *labels: str):
        super().__init__(name, help, *labels)
        self._values: dict[Labels, list[typing.Any]] = {}
        if not labels:  # the only sample starts at zero
            self._values[()] = [0]

    def family(self) -> Family:
        return Family(
            self, {labels: value for labels, [value] in list(self._values.items())}
        )

    def _value(self, labels: Labels) -> list[typing.Any]:
        return self._values.get(labels) or self._values.setdefault(labels, [0])


class Counter(_Counted):
    """Counts events."""

    kind = 'counter'

    def increment(self, *labels: str, by: int = 1) -> None:
        value = self._value(labels)
        value[0] += by


class Gauge(_Counted):
    """Counts what is in progress now."""

    def enter(self, *labels: str) -> None:
        value = self._value(labels)
        value[0] += 1

    def leave(self, *labels: str) -> None:
        value = self._value(labels)
        value[0] -= 1


class Histogram(_Counted):
    """Counts durations in seconds by the bounds that they do not exceed."""

    kind = 'histogram'

    def __init__(self, name: str, help: str, *labels: str, bounds: tuple[float, ...]):
        super().__init__(name, help, *labels)
        self._values.clear()
        self.bounds = bounds

    def observe(self, seconds: float, labels: Labels = ()) -> None:
        """Count a duration; the last item of its list is the sum of all."""
        try:
            value = self._values[labels]
        except KeyError:
            value = self._values.setdefault(
                labels, [0] * (len(self.bounds) + 1) + [0.0]
            )
        place = bisect_left(self.bounds, seconds)
        value[place] += 1
        value[-1] += seconds

    def family(self) -> Family:
        return Family(
            self,
            {
                labels: Distribution(self.bounds, tuple(counts), total)
                for labels, [*counts, total] in list(self._values.items())
            },
        )


Source = Callable[[], Iterator[Family]]
"""Returns families at each scrape."""

REQUESTS = Histogram(
    'http_request_duration_seconds',
    'Requests by method, template of the URL and status. The route is '
    '"unmatched" for what was refused before one was found.',
    'method',
    'route',
    'status',
    bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

CLAIMS = Counter('work_claims_total', 'Work claimed by this process.', 'kind')
RETRIES = Counter(
    'work_retries_total', 'Work put back after an error that may pass.', 'kind'
)
FAILURES = Counter('work_failures_total', 'Work that has failed.', 'kind')
RESCUES = Counter(
    'work_rescues_total',
    'Work abandoned by another process and rescued by this one.',
    'kind',
)
LOST_CLAIMS = Counter(
    'work_lost_claims_total',
    'Work whose result was dropped, as another process had claimed it.',
)
DRIVER_CALLS = Histogram(
    'driver_call_duration_seconds',
    'Calls of drivers by back end, method and outcome: ok, unavailable '
    '(the driver asks to be called again), stale (refused to an outdated '
    'claim) or failed.',
    'backend',
    'method',
    'outcome',
    bounds=(0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800),
)
DRIVER_CALLS_RUNNING = Gauge(
    'driver_calls_running', 'Calls in progress.', 'backend', 'method'
)
DATABASE_RETRIES = Counter(
    'database_retries_total', 'Transactions that were run again.'
)
DATABASE_DEADLOCKS = Counter(
    'database_deadlocks_total',
    'Transactions that lost against another: deadlocks, serialization '
    'failures and locks that were waited for too long.',
)
DATABASE_BUSY = Counter(
    'database_busy_total', 'Transactions given up after losing for too long.'
)
HINTS_SENT = Counter('hints_sent_total', 'Hints about due work sent.')
HINTS_LOST = Counter(
    'hints_lost_total', 'Hints that could not be sent; the sweep finds the work later.'
)
EVENTS_SENT = Counter('events_sent_total', 'Events that the bus has accepted.')
EVENTS_FAILED = Counter('events_failed_total', 'Attempts to send an event that failed.')
QUOTA_REFUSALS = Counter(
    'quota_refusals_total', 'Requests refused by a limit.', 'resource'
)

COUNTED: tuple[_Counted, ...] = (
    REQUESTS,
    CLAIMS,
    RETRIES,
    FAILURES,
    RESCUES,
    LOST_CLAIMS,
    DRIVER_CALLS,
    DRIVER_CALLS_RUNNING,
    DATABASE_RETRIES,
    DATABASE_DEADLOCKS,
    DATABASE_BUSY,
    HINTS_SENT,
    HINTS_LOST,
    EVENTS_SENT,
    EVENTS_FAILED,
    QUOTA_REFUSALS,
)
"""All metrics whose samples this process keeps."""


def counted() -> Iterator[Family]:
    """Yield what this process has counted since its start."""
    for metric in COUNTED:
        yield metric.family()
