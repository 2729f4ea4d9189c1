"""The page /metrics, read by the parser of Prometheus' own library."""

from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics
import pytest

from manila_lite import metrics
from manila_lite.api import metrics_page

REQUESTS = 'manila_lite_http_request_duration_seconds'


@pytest.fixture
def client(make_client):
    return make_client(
        '[DEFAULT]\n', metrics=metrics_page.MetricsPage([metrics.counted])
    )


def scrape(client, **headers):
    """Return the samples of the page: value by name and labels."""
    found = client('GET', '/metrics', version=None, headers=headers)
    assert found.status_int == 200
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in parser.text_string_to_metric_families(found.text)
        for sample in family.samples
    }


def requests(client, *labels):
    key = (f'{REQUESTS}_count', *sorted(labels))
    return scrape(client).get(key, 0)


def test_request_is_counted_by_the_template_of_its_url(client):
    labels = 'GET', '/v2/widgets/{widget_id}', '200'
    before = requests(client, *labels)
    assert client('GET', '/v2/widgets/1').status_int == 200
    assert client('GET', '/v2/abcdef0123/widgets/2').status_int == 200
    assert requests(client, *labels) == before + 2


def test_buckets_are_cumulative_and_end_with_all_requests(client):
    client('GET', '/v2/widgets/1')
    found = scrape(client)
    labels = 'GET', '/v2/widgets/{widget_id}', '200'

    def bucket(bound):
        return found[f'{REQUESTS}_bucket', *sorted((bound, *labels))]

    bounds = [*map(str, map(float, metrics.REQUESTS.bounds)), '+Inf']
    counts = [bucket(bound) for bound in bounds]
    assert counts == sorted(counts)
    assert counts[-1] == found[f'{REQUESTS}_count', *sorted(labels)]


@pytest.mark.parametrize('path', ['/v2/secret-1', '/secret-2', '/v3/secret'])
def test_unknown_url_and_method_are_no_labels(client, path):
    before = requests(client, 'other', 'unmatched', '404')
    assert client('SECRET', path).status_int == 404
    assert requests(client, 'other', 'unmatched', '404') == before + 1
    assert not any('secret' in ' '.join(key).lower() for key in scrape(client))


def test_page_has_the_figures_of_the_process(client):
    found = scrape(client)
    assert found['process_resident_memory_bytes',] > 1 << 20
    assert found['process_open_fds',] > 0


def test_openmetrics_is_sent_to_those_who_accept_it(client):
    found = client(
        'GET',
        '/metrics',
        version=None,
        headers={'Accept': 'application/openmetrics-text; version=1.0.0'},
    )
    assert found.content_type == 'application/openmetrics-text'
    assert found.text.endswith('# EOF\n')


NAMES = ('plain', 'a "quoted"\nname\\')


@pytest.mark.parametrize(
    'accept, parse',
    [
        ('text/plain', parser.text_string_to_metric_families),
        (
            'application/openmetrics-text; version=1.0.0',
            openmetrics.text_string_to_metric_families,
        ),
    ],
)
def test_lines_are_read_as_they_were_counted(accept, parse):
    calls = metrics.Histogram('calls', 'By "name".\nAll.', 'name', bounds=(0.5, 1, 10))
    errors = metrics.Counter('errors_total', r'In C:\all.', 'name', 'kind')
    load = metrics.Gauge('load', 'Of all.')
    for name in NAMES:
        for seconds in (0.1, 0.6, 0.6, 11.0):
            calls.observe(seconds, (name,))
        errors.increment(name, 'io')
    load.enter()

    def source():
        yield from (one.family() for one in (calls, errors, load))

    page = metrics_page.MetricsPage([source])
    text = b''.join(page({'HTTP_ACCEPT': accept}, lambda *args: None)).decode()
    found, about = {}, {}
    for family in parse(text):
        about[family.name] = (family.type, family.documentation)
        for one in family.samples:
            found[one.name, *(value for _, value in sorted(one.labels.items()))] = (
                one.value
            )
    prefix = metrics.PREFIX
    for name in NAMES:
        buckets = {'0.5': 1, '1.0': 3, '10.0': 3, '+Inf': 4}
        for bound, number in buckets.items():
            assert found[f'{prefix}calls_bucket', bound, name] == number
        assert found[f'{prefix}calls_count', name] == 4
        assert found[f'{prefix}calls_sum', name] == pytest.approx(12.3)
        assert found[f'{prefix}errors_total', 'io', name] == 1
    assert found[f'{prefix}load',] == 1
    assert about[f'{prefix}calls'] == ('histogram', calls.help)
    assert about[f'{prefix}errors'] == ('counter', errors.help)


def test_page_is_read_only(client):
    assert client('POST', '/metrics', version=None).status_int == 405


def test_api_has_no_page_unless_it_is_configured(make_client):
    assert make_client()('GET', '/metrics').status_int == 404
