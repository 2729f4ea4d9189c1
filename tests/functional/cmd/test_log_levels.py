"""Which log levels of single loggers are valid."""

import logging

from oslo_config import cfg
import pytest

from manila_lite.cmd import logs
from tests.support.manage_command import manage


def test_levels_are_names_and_numbers():
    assert logs.parse(['a=WARN', 'b.c=5', 'a=ERROR']) == {'a': logging.ERROR, 'b.c': 5}


@pytest.mark.parametrize('pair', ['a', 'a=', 'a=warn', 'a=1.5', 'a = INFO'])
def test_level_that_logging_does_not_know_is_refused(pair):
    with pytest.raises(cfg.Error, match=f'"{pair}" is not logger=LEVEL'):
        logs.parse(['b=INFO', pair])


def test_command_with_an_unknown_level_reports_it_in_one_line(configured):
    files = configured('[DEFAULT]\ndefault_log_levels = tooz\n')
    (error,) = manage('db', 'version', *files, code=1).splitlines()
    assert 'default_log_levels: "tooz" is not logger=LEVEL' in error
