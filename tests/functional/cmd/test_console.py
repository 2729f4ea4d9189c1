"""Arguments, versions, exit codes and errors of all commands."""

from importlib import metadata
import subprocess
import sys
import unittest.mock

import pytest

from manila_lite.cmd import console
from tests.support import command_line
from tests.support.manage_command import COMMAND, manage


@pytest.mark.parametrize(
    'command',
    [
        (),
        ('fly',),
        ('work',),
        ('recovery', 'run', 'share_instance'),
        ('quota', 'show'),
        ('quota', 'set', 'red'),
        ('quota', 'set', 'red', '--shares', 'many'),
        ('quota', 'show', 'red', '--user', 'u', '--share-type', 't'),
        ('user', 'add', 'ann'),
        ('service', 'describe'),
    ],
)
def test_usage_errors_have_exit_code_2(state, command):
    output = manage('--state-dir', state, *command, code=2)
    assert output.startswith('usage: manila-lite-manage')


PROGRAMS = ('', '-api', '-scheduler', '-share', '-manage')


@pytest.mark.parametrize('name', [f'manila-lite{end}' for end in PROGRAMS])
def test_every_command_knows_its_version(name):
    (point,) = metadata.entry_points(group='console_scripts', name=name)
    ended = command_line.run(
        lambda argv: run_as(point.load(), name, *argv), ['--version']
    )
    assert (ended.code, ended.out) == (0, f'{name} {metadata.version("manila_lite")}\n')


def run_as(main, name, *argv):
    with unittest.mock.patch.object(sys, 'argv', [name, *argv]):
        main()


def test_reader_of_the_output_may_stop_reading(state):
    with subprocess.Popen(
        [*COMMAND, 'quota', 'show', '--default', '--state-dir', state],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b''
        assert process.wait(60) == 0


def test_columns_are_aligned_also_with_wide_characters(capsys):
    console.print_table(
        ('id', 'name', 'note'), [('a', '日本', None), ('bcd', 'x\ny', '')]
    )
    assert capsys.readouterr().out.splitlines() == [
        'id   name  note',
        'a    日本  -',
        'bcd  x y',
    ]


def test_state_directory_of_make_run_is_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = manage('work', 'list', code=1)
    assert '--state-dir' in output
    assert '"make run"' in output
    assert '--state-dir state' not in output
    manage('db', 'sync', '--state-dir', 'state')
    output = manage('work', 'list', code=1)
    assert '"--state-dir state" for the one in ./state' in output
