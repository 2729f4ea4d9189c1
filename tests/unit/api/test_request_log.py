"""The line of each request in the log."""

import base64
import logging

import pytest

from manila_lite.api import request_log


def line_of(caplog, status='200 OK', **environ):
    """Return the lines of a request."""
    with caplog.at_level(logging.INFO):
        request_log.log(
            {'REQUEST_METHOD': 'GET', 'openstack.request_id': 'req-1'}
            | {name.replace('__', '.'): environ[name] for name in environ},
            status,
            0.0,
        )
    return [record.getMessage() for record in caplog.records]


def test_request_has_a_line(caplog):
    (line,) = line_of(
        caplog, PATH_INFO='/v2/shares', QUERY_STRING='limit=1', REMOTE_ADDR='10.0.0.9'
    )
    assert line.startswith('req-1 GET /v2/shares?limit=1 of ')
    assert 'from 10.0.0.9: 200 in ' in line


def test_line_names_its_place_in_the_source(caplog):
    line_of(caplog, PATH_INFO='/v2/shares')
    (record,) = caplog.records
    assert (record.module, record.funcName) == ('request_log', 'log')
    with open(record.pathname) as source:
        assert source.readlines()[record.lineno - 1].startswith('def log(')


def test_client_cannot_add_lines(caplog):
    (line,) = line_of(caplog, PATH_INFO='/v2\nERROR all is lost\x1b[2J')
    assert line.isprintable()
    assert len(line_of(caplog, PATH_INFO='/' + 'x' * 99999)[-1]) < 2000


def test_successful_health_checks_are_left_out(caplog):
    assert line_of(caplog, PATH_INFO='/healthcheck') == []
    assert line_of(caplog, '503 Unavailable', PATH_INFO='/healthcheck')


def test_refused_token_is_not_shown(caplog):
    first, second = line_of(
        caplog, '401 Unauthorized', PATH_INFO='/v2/shares', HTTP_X_AUTH_TOKEN='secret'
    )
    assert first == 'Sign-in of a user with an invalid token from - refused'
    assert 'secret' not in first + second


@pytest.mark.parametrize(
    'given, user',
    [
        ('Basic ' + base64.b64encode(b'alice:secret').decode(), 'user alice'),
        ('Basic ' + base64.b64encode(b'a\nb:c').decode(), r"user 'a\nb'"),
        ('Basic nonsense', 'an unknown user'),
        ('', 'an unknown user'),
    ],
)
def test_refused_sign_in_names_user_and_address(caplog, given, user):
    first, second = line_of(
        caplog,
        '401 Unauthorized',
        PATH_INFO='/v2/shares',
        HTTP_AUTHORIZATION=given,
        REMOTE_ADDR='10.0.0.9',
    )
    assert first == f'Sign-in of {user} from 10.0.0.9 refused'
    assert '401' in second
    assert 'secret' not in first + second
