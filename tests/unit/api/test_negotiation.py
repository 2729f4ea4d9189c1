"""Which version is spoken, and what the answer says about it."""

import pytest

from manila_lite.api import versions

VERSION, VARY = versions.HEADER, 'Vary'
EXPERIMENTAL = versions.EXPERIMENTAL_HEADER


@pytest.mark.parametrize(
    'asked, minor', [(None, 0), ('2.0', 0), ('2.7', 7), ('2.99', 99)]
)
def test_answer_is_in_the_version_asked_for_and_says_so(client, asked, minor):
    answer = client('GET', '/v2/shelves/a1', version=asked)
    assert answer.json['shelf']['minor'] == minor
    assert answer.headers[VERSION] == f'2.{minor}'
    assert answer.headers[VARY] == VERSION


@pytest.mark.parametrize('asked', ['latest', '2.05', '2', '', 'é'])
def test_text_that_is_no_version_is_400_and_not_echoed(client, asked):
    answer = client('GET', '/v2/shelves/a1', version=asked)
    assert answer.status_int == 400
    assert answer.json['badRequest']['code'] == 400
    assert VERSION not in answer.headers
    assert VARY not in answer.headers


@pytest.mark.parametrize('asked', ['2.100', '1.0', '3.5'])
def test_version_out_of_range_is_406_and_echoed(client, asked):
    answer = client('GET', '/v2/shelves/a1', version=asked)
    assert answer.status_int == 406
    fault = answer.json['computeFault']
    assert fault['code'] == 406
    assert '2.0' in fault['message']
    assert '2.99' in fault['message']
    assert answer.headers[VERSION] == asked
    assert answer.headers[VARY] == VERSION


@pytest.mark.parametrize('path', ['/v2/', '/v2/shelves', '/v2/extensions'])
def test_version_out_of_range_is_406_everywhere_in_v2(client, path):
    assert client('GET', path, version='2.100').status_int == 406


@pytest.mark.parametrize(
    'path, status',
    [
        ('/v2/shelves/none', 404),
        ('/v2/fail/crash', 500),
        ('/v2/fail/quota', 413),
        ('/v2/shelves/f1', 403),
        ('/v2/fedcba/shelves', 400),
    ],
)
def test_faults_echo_the_version_too(client, path, status):
    answer = client(
        'GET', path, version='2.31', headers={EXPERIMENTAL: 'true'}
    )
    assert answer.status_int == status
    assert answer.headers[VERSION] == '2.31'
    assert answer.headers[VARY] == VERSION
    assert answer.headers[EXPERIMENTAL] == 'True'


@pytest.mark.parametrize(
    'path', ['/', '/healthcheck', '/v1', '/nowhere', '/v2', '/v2/nowhere']
)
def test_answers_outside_of_the_versions_carry_no_version(client, path):
    answer = client('GET', path)
    assert VERSION not in answer.headers
    assert VARY not in answer.headers


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
    answer = client('GET', '/v2/shelves', headers={EXPERIMENTAL: sent})
    assert answer.status_int == 200
    assert answer.headers.get(EXPERIMENTAL) == echoed


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
    answer = client(
        'GET', '/v2/age', version=f'2.{minor}', headers={EXPERIMENTAL: header}
    )
    if found:
        assert answer.json == {'is': found}
    else:
        assert answer.status_int == 404
        assert answer.json['itemNotFound']['code'] == 404


@pytest.mark.parametrize(
    'minor, status', [(2, 404), (3, 203), (80, 203), (81, 404)]
)
def test_method_outside_of_its_window_looks_like_404(client, minor, status):
    answer = client('GET', '/v2/odd', version=f'2.{minor}')
    assert answer.status_int == status
    if status == 404:
        assert answer.json['itemNotFound']['code'] == 404
