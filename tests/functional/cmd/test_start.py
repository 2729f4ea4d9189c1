"""Configuration and error reports that all commands share."""

import os
import subprocess
import sys

import pytest


def run_with(concurrency, code):
    return subprocess.run(
        [sys.executable, '-c', code],
        text=True,
        capture_output=True,
        env=os.environ | {'MANILA_LITE_CONCURRENCY': concurrency},
        timeout=60,
    )


@pytest.mark.parametrize(
    'concurrency, green', [('threading', False), ('eventlet', True)]
)
def test_commands_use_eventlet_when_configured(concurrency, green):
    ended = run_with(
        concurrency,
        f"""
import manila_lite.cmd.start
import socket
assert ('eventlet' in socket.socket.__module__) is {green}
""",
    )
    assert ended.returncode == 0, ended.stderr
    assert 'deprecated' not in ended.stderr


def test_unknown_concurrency_is_refused():
    ended = run_with('fibers', 'import manila_lite.cmd.start')
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        'MANILA_LITE_CONCURRENCY is threading or eventlet, not "fibers"'
    ]


def test_a_bug_keeps_its_traceback():
    ended = run_with(
        'threading',
        """
from manila_lite.cmd import start
with start.report_errors('manila-lite'):
    {}['ours']
""",
    )
    assert 'Traceback' in ended.stderr
    assert 'KeyError' in ended.stderr


def test_passwords_in_urls_are_not_shown():
    ended = run_with(
        'threading',
        """
from oslo_config import cfg
from manila_lite.cmd import start
with start.report_errors('manila-lite'):
    raise cfg.Error('cannot use rabbit://me:pass@broker,me:word@other/')
""",
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        'manila-lite: cannot use rabbit://me:***@broker,me:***@other/\n'
    )
