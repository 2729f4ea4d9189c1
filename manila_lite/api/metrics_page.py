"""The page /metrics: what a process knows, as text for Prometheus.

The library of Prometheus is imported at the first scrape: it takes memory and
time, which processes without a scraper do not spend.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import functools
import itertools
import typing

from manila_lite import metrics
from manila_lite.api import wsgi


class MetricsPage:
    """The WSGI application at /metrics; needs no authentication.

    `sources` are asked at each scrape.
    """

    def __init__(self, sources: Sequence[metrics.Source]):
        self._sources = sources

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        from prometheus_client import exposition

        encode, kind = exposition.choose_encoder(environ.get('HTTP_ACCEPT', ''))
        text = encode(self._registry)
        return wsgi.send(start_response, 200, text, kind=kind)

    @functools.cached_property
    def _registry(self) -> typing.Any:
        """Our metrics, and those of the process and the interpreter."""
        import prometheus_client

        registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)
        prometheus_client.PlatformCollector(registry=registry)
        registry.register(_Collector(self._sources))
        return registry


class _Collector:
    """Our metrics, in the form of Prometheus' library."""

    def __init__(self, sources: Sequence[metrics.Source]):
        self._sources = sources

    def describe(self) -> list:
        """Name nothing in advance, which would take a scrape."""
        return []

    def collect(self) -> Iterator[typing.Any]:
        for source in self._sources:
            for family in source():
                yield _converted(family)


def _converted(family: metrics.Family) -> typing.Any:
    from prometheus_client import metrics_core

    kinds = {
        'counter': metrics_core.CounterMetricFamily,
        'gauge': metrics_core.GaugeMetricFamily,
        'histogram': metrics_core.HistogramMetricFamily,
    }
    metric = family.metric
    found = kinds[metric.kind](metric.name, metric.help, labels=metric.labels)
    for labels, value in family.samples.items():
        if isinstance(value, metrics.Distribution):
            found.add_metric(labels, _buckets(value), value.sum)
        else:
            found.add_metric(labels, value)
    return found


def _buckets(value: metrics.Distribution) -> list[tuple[str, int]]:
    """Return the number of observations up to each bound."""
    bounds = [*(str(float(bound)) for bound in value.bounds), '+Inf']
    return list(zip(bounds, itertools.accumulate(value.counts), strict=True))
