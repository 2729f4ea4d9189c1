"""The arguments of `manila-lite services`."""

import sys

import pytest

from manila_lite.cmd import serve


@pytest.fixture
def printed(monkeypatch, capsys):
    """`printed(code, *arguments)`: what the command prints, with this code."""

    def printed(code, *arguments):
        monkeypatch.setattr(sys, 'argv', ['manila-lite', *arguments])
        with pytest.raises(SystemExit) as ended:
            serve.main()
        assert ended.value.code == code
        output = capsys.readouterr()
        return ' '.join((output.err or output.out).split())

    return printed


def test_help_names_the_services(printed):
    shown = printed(0, 'services', '--help')
    assert 'services to run, of api, scheduler, share, data;' in shown
    assert '[]' not in shown


@pytest.mark.parametrize(
    'arguments, problem',
    [
        (('api', 'apis'), 'KIND: apis is none of api, scheduler, share, data'),
        (('--apis', 'many'), '--apis: many is not a positive number'),
        (('--apis', '0'), '--apis: 0 is not a positive number'),
    ],
)
def test_wrong_argument_is_named(printed, arguments, problem):
    shown = printed(2, 'services', *arguments)
    assert shown.endswith(f'error: argument {problem}')
