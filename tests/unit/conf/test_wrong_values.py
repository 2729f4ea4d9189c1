"""Wrong values are named by option, section and file."""

import re

from oslo_config import cfg, types
from oslo_log import log
import pytest

from manila_lite import conf
from manila_lite.conf import wrong_values

BACKEND = conf.backend.GROUP.name
INNER = re.compile('LocationInfo|Locations|invalid literal|base 10|convert')


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'manila.conf'


@pytest.fixture
def read(path):
    """`read(text)`: the configuration of a file with this text."""

    def read(text):
        path.write_text(text)
        return conf.new(files=[str(path)])

    return read


@pytest.mark.parametrize(
    'section, line, reason',
    [
        ('DEFAULT', 'report_interval = often', "'often' is no integer"),
        (
            'DEFAULT',
            'osapi_share_listen_port = 70000',
            'it should be less than or equal to 65535',
        ),
        (
            'DEFAULT',
            'auth_strategy = none',
            "'none' is none of noauth, noauthv2, keystone, http_basic",
        ),
        ('quota', 'shares = ten', "'ten' is no integer"),
        ('monitoring', 'api_metrics = perhaps', "'perhaps' is neither true nor false"),
        (
            'DEFAULT',
            'state_path = $nowhere/x',
            'it names no option after $; write $$ for the sign itself',
        ),
    ],
)
def test_wrong_value_is_named(read, path, section, line, reason):
    options = read(f'[{section}]\n{line}\n')
    with pytest.raises(conf.BadConfiguration) as raised:
        conf.check(options)
    name = line.partition(' ')[0]
    assert str(raised.value) == (
        f'{path}: option {name} in section [{section}]: {reason}'
    )


def test_all_wrong_values_are_reported_at_once(read):
    options = read('[DEFAULT]\nreport_interval = a\n[quota]\nshares = b\n')
    with pytest.raises(conf.BadConfiguration) as raised:
        conf.check(options)
    assert str(raised.value).count('is no integer') == 2


def test_wrong_value_of_a_back_end_is_named(read, path):
    options = read(
        '[DEFAULT]\nenabled_share_backends = one\n'
        '[one]\nshare_driver = dummy\n'
        'driver_handles_share_servers = false\ndummy_driver_capacity_gb = 1T\n'
    )
    with pytest.raises(conf.BadConfiguration) as raised:
        conf.backends(options)
    assert str(raised.value) == (
        f'back end "one": {path}: option dummy_driver_capacity_gb in section '
        "[one]: '1T' is no number"
    )


def test_the_last_file_is_named_that_sets_the_option(tmp_path):
    files = [tmp_path / name for name in ('a.conf', 'b.conf', 'c.conf')]
    texts = ('report_interval = 5', 'report_interval = x', '')
    for file, text in zip(files, texts, strict=True):
        file.write_text(f'[DEFAULT]\n{text}\n')
    options = conf.new(files=map(str, files))
    (found,) = wrong_values.find(options)
    assert found.startswith(f'{files[1]}: option report_interval ')


def test_no_typed_option_is_answered_with_words_of_the_library(read, path):
    """One file in which all of them have a wrong value."""
    wrong = {
        (getattr(group, 'name', None) or 'DEFAULT', option.dest)
        for group, options in conf.list_opts()
        for option in options
        if isinstance(option.type, types.Integer | types.Float | types.Boolean)
    }
    assert len(wrong) > 100
    sections = sorted({section for section, _ in wrong})
    options = read(
        ''.join(
            f'[{section}]\n'
            + ''.join(f'{n} = ?!\n' for s, n in sorted(wrong) if s == section)
            for section in sections
        )
    )
    conf.register_backend(options, BACKEND)
    found = wrong_values.find(options)
    named = {
        re.match(
            rf'{path}: option (\w+) in section \[(\w+)\]: \'\?!\' is n', text
        ).group(2, 1)
        for text in found
    }
    assert named == wrong
    assert [text for text in found if INNER.search(text)] == []


def test_wrong_value_of_an_option_of_the_command_line(tmp_path, capfd):
    """oslo.config would print it and end the process, even while it runs."""
    file = tmp_path / 'manila.conf'
    for text, reason in (
        ('debug = perhaps', "option debug in section .DEFAULT.: 'perhaps' is "),
        ('log_dir = $nowhere/x', 'a value with .nowhere names no option'),
    ):
        file.write_text(f'[DEFAULT]\n{text}\n')
        options = cfg.ConfigOpts()
        log.register_options(options)
        with (
            pytest.raises(wrong_values.WrongValue, match=reason),
            wrong_values.raised(),
        ):
            options([], default_config_files=[str(file)])
    assert capfd.readouterr().err == ''


def test_wrong_arguments_are_printed_as_before(capsys):
    options = cfg.ConfigOpts()
    with pytest.raises(SystemExit) as ended, wrong_values.raised():
        options(['--unknown'], default_config_files=[])
    assert ended.value.code == 2
    assert 'unrecognized arguments: --unknown' in capsys.readouterr().err
