"""Version negotiation and the version headers of responses."""

import pytest

from manila_lite.api import versions

VERSION, VARY = versions.HEADER, 'Vary'
EXPERIMENTAL = versions.EXPERIMENTAL_HEADER


@pytest.mark.parametrize(
    'requested, minor', [(None, 0), ('2.0', 0), ('2.7', 7), ('2.99', 99)]
)
def test_response_has_the_requested_version_and_names_it(client, requested, minor):
    response = client('GET', '/v2/widgets/a1', version=requested)
    assert response.json['widget']['minor'] == minor
    assert response.headers[VERSION] == f'2.{minor}'
    assert response.headers[VARY] == VERSION


@pytest.mark.parametrize('requested', ['latest', '2.05', '2', '', 'é'])
def test_malformed_version_is_400_and_not_echoed(client, requested):
    response = client('GET', '/v2/widgets/a1', version=requested)
    assert response.status_int == 400
    assert response.json['badRequest']['code'] == 400
    assert VERSION not in response.headers
    assert VARY not in response.headers


@pytest.mark.parametrize('requested', ['2.100', '1.0', '3.5'])
def test_version_out_of_range_is_406_and_echoed(client, requested):
    response = client('GET', '/v2/widgets/a1', version=requested)
    assert response.status_int == 406
    fault = response.json['computeFault']
    assert fault['code'] == 406
    assert '2.0' in fault['message']
    assert '2.99' in fault['message']
    assert response.headers[VERSION] == requested
    assert response.headers[VARY] == VERSION


@pytest.mark.parametrize('path', ['/v2/', '/v2/widgets', '/v2/extensions'])
def test_version_out_of_range_is_406_everywhere_in_v2(client, path):
    assert client('GET', path, version='2.100').status_int == 406


@pytest.mark.parametrize(
    'path, status',
    [
        ('/v2/widgets/none', 404),
        ('/v2/fail/crash', 500),
        ('/v2/fail/quota', 413),
        ('/v2/widgets/f1', 403),
        ('/v2/fedcba/widgets', 400),
    ],
)
def test_faults_echo_the_version_too(client, path, status):
    response = client('GET', path, version='2.31', headers={EXPERIMENTAL: 'true'})
    assert response.status_int == status
    assert response.headers[VERSION] == '2.31'
    assert response.headers[VARY] == VERSION
    assert response.headers[EXPERIMENTAL] == 'True'


@pytest.mark.parametrize(
    'path', ['/', '/healthcheck', '/v1', '/nowhere', '/v2', '/v2/nowhere']
)
def test_unversioned_responses_have_no_version_header(client, path):
    response = client('GET', path)
    assert VERSION not in response.headers
    assert VARY not in response.headers


@pytest.mark.parametrize(
    'sent, echoed',
    [
        ('true', 'True'),
        ('TRUE', 'True'),
        ('1', 'True'),
        ('yes', 'True'),
        ('false', None),
        ('', None),
        ('maybe', None),
    ],
)
def test_true_experimental_header_is_echoed_for_stable_methods_too(
    client, sent, echoed
):
    response = client('GET', '/v2/widgets', headers={EXPERIMENTAL: sent})
    assert response.status_int == 200
    assert response.headers.get(EXPERIMENTAL) == echoed


@pytest.mark.parametrize(
    'minor, header, found',
    [
        (6, '', 'old'),
        (7, '', 'new'),
        (10, '', 'new'),
        (11, '', None),
        (11, 'true', 'new'),
        (55, '', None),
        (55, 'true', 'new'),
        (56, '', 'new'),
        (6, 'true', 'old'),
    ],
)
def test_route_is_chosen_by_version_and_experimental_header(
    client, minor, header, found
):
    response = client(
        'GET', '/v2/age', version=f'2.{minor}', headers={EXPERIMENTAL: header}
    )
    if found:
        assert response.json == {'is': found}
    else:
        assert response.status_int == 404
        assert response.json['itemNotFound']['code'] == 404


@pytest.mark.parametrize('minor, status', [(2, 404), (3, 203), (80, 203), (81, 404)])
def test_method_outside_its_window_is_404(client, minor, status):
    response = client('GET', '/v2/odd', version=f'2.{minor}')
    assert response.status_int == status
    if status == 404:
        assert response.json['itemNotFound']['code'] == 404
