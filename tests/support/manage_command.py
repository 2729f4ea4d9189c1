"""`manila-lite-manage`, run in this process."""

import sys

from manila_lite.cmd.manage import main
from tests.support import command_line

COMMAND = [sys.executable, '-m', 'manila_lite.cmd.manage']


def run(*args, stdin='', code=0):
    """Run the command in this process, after checking the exit code."""
    ended = command_line.run(main, args, stdin)
    assert ended.code == code, ended.err
    assert 'Traceback' not in ended.err
    return ended


def manage(*args, stdin='', code=0):
    """Run the command; return its output, or its errors if there are any."""
    ended = run(*args, stdin=stdin, code=code)
    return ended.err if code else ended.out


def columns(printed):
    return [line.split() for line in printed.splitlines()]
