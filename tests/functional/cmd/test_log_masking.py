"""What is logged has no secrets, wherever they are in a record."""

import contextlib
import io
import logging

from oslo_config import cfg
from oslo_db.exception import DBConnectionError
from oslo_log import formatters, log
import pytest

from manila_lite.api import request_log
from manila_lite.cmd import logs
from manila_lite.context import RequestContext, logged_as

SECRET = 'password=hunter2'


class Stream:
    """A logger whose output the test reads."""

    def __init__(self, formatter):
        self._output = io.StringIO()
        handler = logging.StreamHandler(self._output)
        handler.setFormatter(formatter)
        logs.mask_handler(handler)
        logs.mask_handler(handler)
        self.logger = logging.Logger('any')
        self.logger.addHandler(handler)

    @property
    def text(self):
        assert 'hunter2' not in self._output.getvalue()
        return self._output.getvalue()


@pytest.fixture(params=[logging.Formatter, formatters.JSONFormatter])
def stream(request):
    return Stream(request.param())


def test_messages_and_arguments_are_masked(stream):
    stream.logger.error(f'{SECRET} and %s of %d', SECRET, 3)
    assert 'password=*** and password=*** of 3' in stream.text


def test_database_that_is_away_is_one_line_without_a_traceback(stream):
    try:
        raise DBConnectionError(OSError('refused,\n password=hunter2'))
    except DBConnectionError:
        stream.logger.exception('The sweep of %s failed', 'queues')
    assert 'The sweep of queues failed: ' in stream.text
    assert 'refused' in stream.text
    assert 'hunter2' not in stream.text
    assert 'Traceback' not in stream.text
    assert stream.text.count('\n') == 1


def test_errors_and_their_causes_are_masked(stream):
    try:
        try:
            raise OSError(SECRET)
        except OSError as error:
            raise ValueError(f'{SECRET} again') from error
    except ValueError as error:
        error.add_note(f'a note with {SECRET}')
        stream.logger.exception('It failed')
    assert 'OSError: password=***' in stream.text
    assert 'ValueError: password=*** again' in stream.text
    assert 'a note with password=***' in stream.text
    assert 'direct cause' in stream.text
    assert 'test_errors_and_their_causes_are_masked' in stream.text


def test_errors_that_are_handled_without_being_logged_are_masked(stream):
    try:
        raise OSError(SECRET)
    except OSError:
        stream.logger.error('It failed')
    assert 'It failed' in stream.text


def test_suppressed_causes_stay_suppressed(stream):
    try:
        try:
            raise OSError('the cause')
        except OSError:
            raise ValueError('the error') from None
    except ValueError:
        stream.logger.exception('It failed')
    assert 'the error' in stream.text
    assert 'the cause' not in stream.text


def test_wrong_arguments_do_not_raise(stream):
    stream.logger.error('%d of %d', SECRET)
    assert 'password=***' in stream.text


def test_errors_without_a_text_do_not_raise(stream):
    class Speechless(Exception):
        def __str__(self):
            raise RuntimeError(SECRET)

    try:
        raise Speechless
    except Speechless:
        stream.logger.exception('It failed')
    assert 'Speechless' in stream.text


def test_handlers_of_all_loggers_are_masked(monkeypatch):
    monkeypatch.setattr(logging.getLogger(), 'handlers', [])
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    logger = logging.getLogger('library.with.its.own.handler')
    logger.addHandler(handler)
    try:
        logs.install()
        logger.error(SECRET)
    finally:
        logger.removeHandler(handler)
    assert output.getvalue() == 'password=***\n'


@pytest.mark.parametrize('has_caller', [False, True])
def test_line_of_a_request_looks_like_those_of_the_library(has_caller):
    """It is formatted by code of our own, which is faster."""
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    conf([])
    caller = RequestContext(user_id='me', project_id='us', domain_id='here')
    record = logging.LogRecord(
        request_log.NAME, logging.INFO, __file__, 1, 'GET /', None, None
    )
    formatter = formatters.ContextFormatter(config=conf, datefmt=conf.log_date_format)
    with logged_as(caller) if has_caller else contextlib.nullcontext():
        expected = formatter.format(record)
        plain = logs.for_formatter(formatter)
        assert plain.handles(record)
        assert plain.format(record) == expected
    assert ('me us here' in expected) == has_caller
    conf.set_override('logging_user_identity_format', '%(user)s')
    assert not logs.for_formatter(formatter)
