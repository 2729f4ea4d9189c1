"""Signals to running services: reload, report, and none that kills."""

import os
import pty
import re
import signal
import subprocess

import pytest

from tests.functional.stories import suites
from tests.support.installation import SEPARATE
from tests.support.processes import BINARIES, free_port, wait_until

pytestmark = suites.failures

OPTIONS = 'default_share_type = default\n'


def rewrite(installation, *changes):
    """Change the configuration file of a running installation."""
    text = installation.conf.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    installation.conf.write_text(text)


def reload(command, expected):
    """Send SIGHUP; wait for a line of the log and return it."""
    before = len(command.output)
    os.kill(command.pid, signal.SIGHUP)
    return command.wait_for(
        lambda: re.search(f'.*{expected}.*', command.output[before:]), expected
    )[0]


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_report_shows_threads_and_options_but_no_secrets(install, concurrency):
    installation = install(
        options=f'{OPTIONS}transport_url = memory://me:hush-hush@here/\n',
        concurrency=concurrency,
    ).start()
    serve = installation.running['serve']
    os.kill(serve.pid, signal.SIGUSR1)
    os.kill(serve.pid, signal.SIGUSR2)
    serve.wait_for(lambda: 'transport_url = ***' in serve.output, 'writes a report')
    assert 'Guru Meditation' in serve.output
    assert re.search(r'Thread #\d+', serve.output)
    assert 'default_share_type = default' in serve.output
    assert 'hush-hush' not in serve.output
    serve.wait_for(lambda: 'SIGUSR1 has no effect' in serve.output, 'says so')
    assert installation.rest().get('/shares') == {'shares': []}
    serve.stop()


def test_report_goes_to_the_configured_directory(install, tmp_path):
    folder = tmp_path / 'reports'
    folder.mkdir()
    installation = install(sections=f'[oslo_reports]\nlog_dir = {folder}\n').start()
    serve = installation.running['serve']
    os.kill(serve.pid, signal.SIGUSR2)
    (report,) = wait_until(lambda: list(folder.iterdir()), 'a report')
    assert report.name.startswith('manila-lite_gurumeditation_')
    wait_until(lambda: 'Configuration' in report.read_text(), 'it is whole')


@pytest.mark.facts('LP1785129')
def test_every_service_survives_every_signal(install, broker_url):
    installation = install(
        kind=SEPARATE, options=f'{OPTIONS}transport_url = {broker_url}'
    ).start()
    for command in installation.running.values():
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(command.pid, number)
        reload(command, 'Reloaded; changed: nothing')
        assert 'Guru Meditation' in command.output
    user = installation.rest()
    user.make_default_type()
    user.create_available()


@pytest.mark.facts('LP1785129')
def test_reload_applies_log_levels_and_quotas(install):
    installation = install(
        options=f'{OPTIONS}debug = false\n', sections='[quota]\nshares = 1\n'
    ).start()
    serve = installation.running['serve']
    user = installation.rest()
    user.make_default_type()
    user.create_available()
    user.create(expect=413)
    rewrite(
        installation,
        ('debug = false', 'debug = true\ndefault_log_levels = tooz=ERROR'),
        ('shares = 1', 'shares = 2'),
    )
    assert reload(serve, 'Reloaded').endswith(
        'DEFAULT.debug, DEFAULT.default_log_levels, quota.shares'
    )
    assert user.get('/quota-sets/other')['quota_set']['shares'] == 2
    user.create_available()
    user.create(expect=413)
    serve.wait_for(lambda: ' DEBUG ' in serve.output, 'logs more')
    rewrite(installation, ('debug = true', 'debug = false'))
    reload(serve, 'changed: DEFAULT.debug')


def test_reload_names_what_needs_a_restart(install):
    installation = install(options=f'{OPTIONS}osapi_max_limit = 7').start()
    serve = installation.running['serve']
    rewrite(
        installation,
        ('osapi_max_limit = 7', 'osapi_max_limit = 8'),
        ('lease = 2', 'lease = 3'),
    )
    assert reload(serve, 'needs a restart').endswith(
        'DEFAULT.osapi_max_limit, work.lease'
    )


@pytest.mark.parametrize(
    'old, new', [('shares = 9', 'shares = many'), ('[quota]', '[quota')]
)
def test_reload_of_an_invalid_file_changes_nothing(install, old, new):
    installation = install(options=OPTIONS, sections='[quota]\nshares = 9\n').start()
    serve = installation.running['serve']
    rewrite(installation, ('default_share_type', 'debug = true\n#'))
    rewrite(installation, (old, new))
    reload(serve, 'Nothing is reloaded')
    quota = installation.rest().get('/quota-sets/project')['quota_set']
    assert quota['shares'] == 9
    assert ' DEBUG ' not in serve.output
    rewrite(installation, (new, 'shares = 3' if old != '[quota]' else old))
    reload(serve, 'Reloaded; changed: DEFAULT.debug')


def test_reload_with_a_wrong_value_of_a_log_option_changes_nothing(install):
    """oslo.config would end the process."""
    installation = install(options=f'{OPTIONS}debug = false\n').start()
    serve = installation.running['serve']
    rewrite(installation, ('debug = false', 'debug = perhaps'))
    refusal = reload(serve, 'Nothing is reloaded')
    assert "option debug in section [DEFAULT]: 'perhaps' is" in refusal
    assert installation.rest().get('/shares') == {'shares': []}
    rewrite(installation, ('debug = perhaps', 'debug = true'))
    reload(serve, 'Reloaded; changed: DEFAULT.debug')


@pytest.mark.parametrize('pair', ['tooz', 'tooz=', 'tooz=LOUD', 'tooz=warn'])
def test_reload_of_a_level_that_is_none_changes_nothing(install, pair):
    installation = install(options=OPTIONS).start()
    serve = installation.running['serve']
    line = f'debug = true\ndefault_log_levels = sqlalchemy=10, {pair}\n#'
    rewrite(installation, ('default_share_type', line))
    refusal = reload(serve, 'Nothing is reloaded')
    assert f'default_log_levels: "{pair}" is not logger=LEVEL' in refusal
    rewrite(installation, (f', {pair}', ', tooz=5'), ('debug = true', ''))
    changed = reload(serve, 'Reloaded; changed')
    assert changed.endswith(': DEFAULT.default_log_levels')


def test_service_in_a_terminal_that_is_closed_stops(tmp_path):
    terminal, child_end = pty.openpty()
    log = tmp_path / 'log'
    with log.open('wb') as output:
        process = subprocess.Popen(
            [
                BINARIES / 'manila-lite',
                'serve',
                '--state-dir',
                tmp_path / 'state',
                '--port',
                str(free_port()),
            ],
            stdin=child_end,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    os.close(child_end)
    try:
        wait_until(lambda: 'answers at' in log.read_text(), 'serves')
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: 'Reloaded' in log.read_text(), 'reloads')
        os.close(terminal)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
