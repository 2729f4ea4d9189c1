"""The page /metrics: what a process knows, as text for Prometheus.

The library of Prometheus is imported at the first scrape: it takes memory and
time, which processes without a scraper do not spend. The lines of our own
metrics are written here: the library would sort and escape the labels of a
histogram once for each of its buckets, four times the work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import functools
import itertools
import math
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
        is_open = kind.startswith(_OPEN)
        text = encode(self._registry)
        families = itertools.chain.from_iterable(source() for source in self._sources)
        lines = (line for one in families for line in _lines(one, is_open))
        ours = ''.join(lines).encode()
        text = text.removesuffix(_END) + ours + _END if is_open else text + ours
        return wsgi.send(start_response, 200, text, kind=kind)

    @functools.cached_property
    def _registry(self) -> typing.Any:
        """The metrics of the process and the interpreter."""
        import prometheus_client

        registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)
        prometheus_client.PlatformCollector(registry=registry)
        return registry


_OPEN = 'application/openmetrics-text'
_END = b'# EOF\n'
_TOTAL = '_total'
_ESCAPED = str.maketrans({'\\': r'\\', '\n': r'\n', '"': r'\"'})
_ESCAPED_HELP = str.maketrans({'\\': r'\\', '\n': r'\n'})


def _lines(family: metrics.Family, is_open: bool) -> Iterator[str]:
    """Yield the lines of a metric; OpenMetrics names counters without a suffix."""
    metric = family.metric
    name = shown = metric.name
    if metric.kind == 'counter':
        name = name.removesuffix(_TOTAL) + _TOTAL
        shown = name.removesuffix(_TOTAL) if is_open else name
    about = metric.help.translate(_ESCAPED if is_open else _ESCAPED_HELP)
    yield f'# HELP {shown} {about}\n'
    yield f'# TYPE {shown} {metric.kind}\n'
    for values, value in family.samples.items():
        labels = ','.join(
            f'{label}="{text.translate(_ESCAPED)}"'
            for label, text in zip(metric.labels, values, strict=True)
        )
        if isinstance(value, metrics.Distribution):
            yield from _histogram(name, labels, value)
        else:
            yield f'{name}{_braced(labels)} {_number(value)}\n'


def _histogram(name: str, labels: str, value: metrics.Distribution) -> Iterator[str]:
    """Yield the number of observations up to each bound, of all, and their sum."""
    others = f'{labels},' if labels else ''
    bounds = [*(str(float(bound)) for bound in value.bounds), '+Inf']
    count = 0
    for bound, more in zip(bounds, value.counts, strict=True):
        count += more
        yield f'{name}_bucket{{{others}le="{bound}"}} {count}.0\n'
    yield f'{name}_count{_braced(labels)} {count}.0\n'
    yield f'{name}_sum{_braced(labels)} {_number(value.sum)}\n'


def _braced(labels: str) -> str:
    return f'{{{labels}}}' if labels else ''


def _number(value: float) -> str:
    if math.isinf(value):
        return '+Inf' if value > 0 else '-Inf'
    return 'NaN' if math.isnan(value) else repr(float(value))
