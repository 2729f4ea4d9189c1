"""The page /metrics of running processes."""

from prometheus_client import parser
import pytest
import requests

from tests.support.installation import SEPARATE, SERVE

POOL = 'pool'
OFF = '[monitoring]\napi_metrics = false\n'


def page(installation):
    return requests.get(f'{installation.root}/metrics', timeout=30)


@pytest.mark.parametrize(
    'kind, sections, code',
    [
        (SERVE, '', 200),
        (SERVE, OFF, 404),
        (SEPARATE, '', 404),
        (SEPARATE, '[monitoring]\napi_metrics = true\n', 200),
    ],
    ids=['serve', 'serve, off', 'API', 'API, on'],
)
def test_api_has_the_page_if_configured_and_serve_on_loopback(
    install, kind, sections, code
):
    one = install(
        kind=kind,
        options='default_share_type = default\ntransport_url = memory://\n',
        sections=sections,
    )
    one.start(kind[0])
    assert page(one).status_code == code


def test_serve_on_all_addresses_has_no_page(install):
    one = install(options='default_share_type = default\n')
    text = one.conf.read_text().replace(
        'osapi_share_listen = 127.0.0.1', 'osapi_share_listen = 0.0.0.0'
    )
    one.conf.write_text(f'{text}\n[DEFAULT]\nnoauth_allow_remote = true\n')
    one.start('serve')
    assert page(one).status_code == 404


def test_share_leaves_its_traces(install):
    one = install(options='default_share_type = default\n').start()
    user = one.rest()
    user.make_default_type()
    user.create_available(share_proto='NFS', size=2)
    found = samples(one)

    def value(name, *labels):
        return found[name, *sorted(labels)]

    host = one.service_host()
    assert value('database_up') == 1
    assert value('service_up', 'manila-share', host) == 1
    work = 'provisioning.create_share_instance'
    assert value('work_claims_total', work) == 1
    calls = 'driver_call_duration_seconds_count'
    assert value(calls, 'dummy', 'create_share', 'ok') == 1
    assert value('pool_allocated_bytes', f'{host}#{POOL}') == 2 << 30
    requests = 'http_request_duration_seconds_count'
    assert value(requests, 'POST', '/v2/shares', '200') == 1


def samples(installation):
    """Return the values of our metrics by name and label values."""
    return {
        (
            sample.name.removeprefix('manila_lite_'),
            *sorted(sample.labels.values()),
        ): sample.value
        for family in parser.text_string_to_metric_families(page(installation).text)
        for sample in family.samples
    }
