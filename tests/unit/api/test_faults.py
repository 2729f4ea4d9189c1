"""Every error has the published form and reveals no secrets."""

import logging

import pytest

from manila_lite import exception, masking
from manila_lite.api import faults
from tests.support import reference


def fail(client, how, **more):
    return client('GET', f'/v2/fail/{how}', **more)


@pytest.mark.parametrize(
    'how, status, body',
    [
        (
            'quota',
            413,
            {
                'overLimit': {
                    'code': 413,
                    'retryAfter': '0',
                    'message': 'ShareLimitExceeded: Maximum number of shares '
                    'allowed (1)'
                    ' exceeded: 1 are in use or reserved.',
                }
            },
        ),
        (
            'busy',
            503,
            {
                'serviceUnavailable': {
                    'code': 503,
                    'message': 'The service is busy; try again later.',
                }
            },
        ),
        (
            'inner',
            500,
            {'computeFault': {'code': 500, 'message': faults.GENERIC_MESSAGE}},
        ),
        (
            'crash',
            500,
            {'computeFault': {'code': 500, 'message': faults.GENERIC_MESSAGE}},
        ),
        ('conflict', 409, {'conflictingRequest': {'code': 409, 'message': 'no'}}),
        ('webob', 415, {'badMediaType': {'code': 415, 'message': 'no such type'}}),
        ('challenge', 401, {'unauthorized': {'code': 401, 'message': 'who are you'}}),
        ('gone', 410, {'computeFault': {'code': 410, 'message': 'long ago'}}),
    ],
)
def test_error_becomes_a_fault(client, how, status, body):
    response = fail(client, how)
    assert response.status_int == status
    assert response.content_type == 'application/json'
    assert response.json == body


@pytest.mark.parametrize(
    'how, seconds', [('quota', '0'), ('busy', '2'), ('conflict', None), ('crash', None)]
)
def test_retry_after_is_sent_if_retrying_helps(client, how, seconds):
    assert fail(client, how).headers.get('Retry-After') == seconds


def test_headers_of_http_errors_are_preserved(client):
    assert fail(client, 'challenge').headers['WWW-Authenticate'] == 'Basic'


def test_redirect_is_not_a_fault(client):
    response = fail(client, 'moved')
    assert response.status_int == 302
    assert response.headers['Location'] == 'http://elsewhere/'


def test_keys_are_the_published_ones():
    published = {
        row['http_code']: row['body_key']
        for row in reference.table('exceptions.csv')
        if row['kind'] == 'status to key'
        and row['http_code'].isdigit()
        and row['condition_or_exception'] == ''
    }
    assert {str(code): key for code, key in faults.FAULT_KEYS.items()} == published


def test_words_of_a_message_are_no_secrets(client):
    assert fail(client, 'text').json['badRequest']['message'] == (
        'Invalid input received: access_key: must be a text'
    )


def test_known_secrets_and_passwords_of_urls_are_not_shown(client, monkeypatch):
    monkeypatch.setattr(masking, '_known', masking._KnownSecrets())
    masking.remember_secrets(['the-secret'])
    assert fail(client, 'known').json['badRequest']['message'] == (
        'Invalid input received: ***, see http://root:***@array'
    )


@pytest.mark.parametrize('how, fact', [('crash', '10.0.0.7'), ('inner', 'rack 7')])
def test_cause_is_logged_with_the_request_and_hidden_from_users(
    client, caplog, how, fact
):
    with caplog.at_level(logging.ERROR):
        response = fail(client, how)
    assert fact not in response.text
    (record,) = caplog.records
    text = record.getMessage()
    assert fact in text
    assert 'Traceback' in text
    assert response.headers['x-compute-request-id'] in text
    assert f'/v2/fail/{how}' in text


def test_secret_in_an_error_is_not_logged(client, caplog):
    fail(client, 'crash')
    assert 'hunter2' not in caplog.text
    assert 'password=***' in caplog.text


@pytest.mark.parametrize('how', ['quota', 'conflict', 'busy', 'webob'])
def test_client_error_is_not_logged_as_an_error(client, caplog, how):
    fail(client, how)
    if how != 'busy':
        assert caplog.records == []


def errors(family):
    for kind in family.__subclasses__():
        # Internal exceptions of other parts never reach a response.
        if kind.__module__ == exception.__name__:
            yield kind
        yield from errors(kind)


@pytest.mark.parametrize(
    'kind',
    sorted(errors(exception.ManilaLiteError), key=lambda kind: kind.__name__),
    ids=lambda kind: kind.__name__,
)
def test_every_error_has_its_declared_code(kind):
    error = kind('the message')
    sent = []

    def app(environ, start_response):
        raise error

    body = b''.join(
        faults.FaultMiddleware(app)(
            {'REQUEST_METHOD': 'GET'}, lambda status, headers: sent.append(status)
        )
    )
    assert sent[0].startswith(f'{kind.code} ')
    shown = kind.code < 500 or issubclass(kind, exception.ServiceUnavailable)
    assert (b'the message' in body) == shown
