"""The documentation builds, and what it names exists.

The build itself checks the names of options, rules, statuses, files and
functions in the pages. These tests check commands, example files and the
content that is generated from the code.
"""

import configparser
import importlib
from importlib import metadata
import json
import os
import pathlib
import pkgutil
import re
import shlex
import subprocess
import sys

import pytest

from manila_lite import conf, metrics, states
from manila_lite.api.routes import ROUTES
from manila_lite.cmd.build import database_metrics
from manila_lite.conf import api
from manila_lite.share.drivers import file_locks
from manila_lite.states import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / 'doc/source'
README, CONTRIBUTING, SECURITY = (
    (ROOT / f'{name}.md').read_text() for name in ('README', 'CONTRIBUTING', 'SECURITY')
)
PAGES = {path.name: path.read_text() for path in SOURCE.glob('*.rst')}
UNITS = sorted((ROOT / 'etc/manila_lite/systemd').glob('*.service'))

OURS = {
    point.name: point
    for point in metadata.entry_points(group='console_scripts')
    if point.value.startswith('manila_lite.')
}
LIBRARY_OPTIONS = {'log_dir', 'transport_url'}  # in section DEFAULT


def build(source, out):
    """Build the pages; treat warnings as errors."""
    return subprocess.run(
        [
            sys.executable,
            '-m',
            'sphinx',
            '-W',
            '--keep-going',
            '-q',
            '-E',
            '-b',
            'html',
            '-c',
            SOURCE,
            '-d',
            out / 'doctrees',
            source,
            out / 'html',
        ],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope='module')
def pages(tmp_path_factory, worker_id):
    """The built pages by name; under '' exit code and errors of the build.

    Workers of one run share them: the build takes 15 s.
    """
    if worker_id == 'master':
        out = tmp_path_factory.mktemp('pages')
    else:
        out = tmp_path_factory.getbasetemp().parent / 'pages'
        out.mkdir(exist_ok=True)
    result = out / 'result.json'
    with file_locks.locked(out, lambda path: os.open(path, os.O_RDONLY)):
        if not result.exists():
            done = build(SOURCE, out)
            result.write_text(json.dumps([done.returncode, done.stderr]))
    return {page.stem: page.read_text() for page in out.glob('html/*.html')} | {
        '': tuple(json.loads(result.read_text()))
    }


def test_pages_build_without_a_warning(pages):
    assert pages[''] == (0, '')


def test_unknown_names_fail_the_build(tmp_path):
    wrong = {
        ':conf:`work.leese`': 'reference target not found: work.leese',
        ':policy:`share:end`': 'reference target not found: share:end',
        ':status:`extended`': 'there is no status extended',
        ':source:`manila_lite/utils.py`': ('there is no source manila_lite/utils.py'),
        ':name:`manila_lite.db.session:Nothing`': (
            'there is no name manila_lite.db.session:Nothing'
        ),
    }
    (tmp_path / 'index.rst').write_text(f'Title\n=====\n\n{" ".join(wrong)}\n')
    done = build(tmp_path, tmp_path / 'out')
    assert done.returncode != 0
    for warning in wrong.values():
        assert warning in done.stderr


def state_tables():
    return {
        value
        for found in pkgutil.iter_modules(states.__path__)
        for value in vars(
            importlib.import_module(f'manila_lite.states.{found.name}')
        ).values()
        if isinstance(value, machine.Machine)
    }


def test_every_status_and_move_is_drawn(pages):
    drawn = '\n'.join(re.findall('<text[^>]*>(.*?)</text>', pages['states']))
    words = set(re.findall(r'\w+', drawn))
    for table in state_tables():
        moves = {
            move.event for status in table.statuses for move in table.moves_from(status)
        }
        assert moves | table.statuses <= words


def test_every_status_in_flight_has_its_line_of_recovery(pages):
    rows = re.findall('<tr.*?</tr>', pages['recovery'], re.DOTALL)
    for table in state_tables():
        for status in table.in_flight:
            assert any(f'>{status}<' in row for row in rows), status


def test_every_option_is_described(pages):
    anchors = set(re.findall('id="conf-([^"]+)"', pages['options']))
    for group, opts in conf.list_opts():
        for option in opts:
            section = (
                None if group is None else group.name.replace('my_backend', 'backend')
            )
            name = '.'.join(filter(None, (section, option.name)))
            assert name in anchors, name


# Commands


def shell_lines():
    """Yield every command line in the documentation."""
    for text in (README, *PAGES.values()):
        yield from re.findall(r'^ *[$#] (.+)$', text, re.MULTILINE)
        yield from re.findall(r'`((?:manila-lite|make|openstack)[^`.]*)`', text)
    for unit in UNITS:
        yield re.search('^ExecStart=(.*)$', unit.read_text(), re.M)[1]


def arguments_of(names):
    """Return the documented uses of commands, as lists of words."""
    found = set()
    for line in shell_lines():
        # A word may contain the sign: host@backend#pool.
        words = shlex.split(re.sub(r'(^|\s)#.*', '', line))
        for number, word in enumerate(words[:5]):
            if word.rpartition('/')[2] in names and 'systemctl' not in words:
                found.add((word.rpartition('/')[2], *words[number + 1 :]))
                break
    return sorted(found)


@pytest.mark.parametrize('command', arguments_of(OURS), ids=' '.join)
def test_shown_command_is_one_of_ours(command, monkeypatch, capsys):
    prog, *args = command
    monkeypatch.setattr(sys, 'argv', [prog, *args, '--help'])
    with pytest.raises(SystemExit) as ended:
        OURS[prog].load()()
    assert ended.value.code == 0
    described = capsys.readouterr().out
    for flag in (word for word in args if word.startswith('--')):
        assert re.search(rf'{flag}\b', described), flag


@pytest.mark.parametrize(
    'command',
    [command for command in arguments_of({'openstack'}) if len(command) > 2],
    ids=' '.join,
)
def test_shown_client_command_is_understood(command):
    words = command[1:]
    known = {
        tuple(point.name.split('_')): point
        for group in ('openstack.share.v2', 'openstack.identity.v3')
        for point in metadata.entry_points(group=group)
    }
    name = max((name for name in known if name == words[: len(name)]), key=len)
    parser = known[name].load()(None, None).get_parser('')
    parser.parse_args(words[len(name) :])


def test_shown_make_targets_exist():
    words = {word for _, *args in arguments_of({'make'}) for word in args}
    subprocess.run(
        ['make', '--dry-run', *sorted(words)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


ALERTS, _, FAULTS = PAGES['run_book.rst'].partition('\nFaults\n------\n')


def test_run_book_has_every_alert():
    rules = (ROOT / 'etc/manila_lite/prometheus-alerts.yaml').read_text()
    alerts = re.findall('alert: (.*)', rules)
    assert alerts
    assert sorted(re.findall('``(ManilaLite[A-Za-z]+)``', ALERTS)) == sorted(alerts)
    named = set(re.findall('``(ManilaLite[A-Za-z]+)``', FAULTS))
    assert named
    assert named - set(alerts) == set()


def test_every_fault_of_the_run_book_says_what_is_seen_and_done():
    _, *parts = re.split(r'\n(.+)\n~~~+\n', FAULTS)
    faults = list(zip(parts[::2], parts[1::2], strict=True))
    assert len(faults) > 10
    for name, text in faults:
        assert re.findall('^:(See|Do):', text, re.M) == ['See', 'Do'], name


def test_metrics_of_the_run_book_exist():
    named = set(re.findall('``(manila_lite_[a-z_]+)', PAGES['run_book.rst']))
    assert len(named) > 10
    existing = [metric.name for metric in metrics.COUNTED]
    existing += [
        value.name
        for value in vars(database_metrics).values()
        if isinstance(value, metrics.Metric)
    ]
    suffix = re.compile('_(count|sum|bucket)$')
    assert {
        name
        for name in named
        if name not in existing and suffix.sub('', name) not in existing
    } == set()


def texts_of_faults():
    """Return the parts of what the run book quotes of logs and checks."""
    literals = re.findall('``(.+?)``', ' '.join(FAULTS.split()))
    for text in literals:
        check, _, reason = text.partition(': ')
        is_check = check in {'backends', 'bus', 'database', 'work'}
        if is_check or re.match('[A-Z][a-z]+ ', text):
            yield from (reason if is_check else text).split('…')


def test_texts_of_logs_and_checks_in_the_run_book_are_those_of_the_code():
    code = '\n'.join(path.read_text() for path in (ROOT / 'manila_lite').rglob('*.py'))
    code = re.sub(r"'\s*\n\s*f?'", '', code).replace('{_NO_ANSWER}', '')
    texts = {text.strip() for text in texts_of_faults()} - {''}
    assert len(texts) > 10
    assert {text for text in texts if text not in code} == set()


# Resources

NAMES_OF_PATHS = {
    'messages': 'user messages',
    'openapi.json': None,
    'recovery': None,
    'quota class sets': 'quotas',
    'quota sets': 'quotas',
    'scheduler stats': 'pools',
    'share manage': 'managed',
    'share unmanage': 'unmanaged',
    'types': 'share types',
    'availability zone': 'availability zones',
    'qos types': 'QoS types',
}
"""The words for the first part of a path, if they are others.

None if it is not of the published API.
"""


def resources():
    """Return the words for what the routes serve."""
    paths = {route.path.strip('/').partition('/')[0] for route in ROUTES}
    words = {re.sub('[_-]', ' ', path.removeprefix('os-')) for path in paths - {''}}
    return {NAMES_OF_PATHS.get(word, word) for word in words} - {None}


def test_page_about_clients_names_all_resources_and_no_other():
    part = PAGES['client.rst'].partition('What is implemented\n')[2]
    listed = ' '.join(re.findall(r'^(?:\* |  ).+$', part, re.M)).replace('*', '')
    listed = listed.partition('``202``')[0]
    assert {name for name in resources() if name not in listed} == set()


def test_no_page_says_that_a_resource_is_missing():
    nouns = '|'.join(name.removeprefix('share ') for name in resources())
    missing = re.compile(
        rf'[^.]*\b(?:{nouns})\b[^.]*not (?:part of this release|implemented'
        r'|supported yet)[^.]*\.|not part of this release[^.]*'
        rf'\b(?:{nouns})\b[^.]*\.'
    )
    assert {
        name: found[0]
        for name, text in (*PAGES.items(), ('README', README))
        if (found := missing.search(' '.join(text.split())))
    } == {}


# Files


@pytest.mark.parametrize(
    'path',
    sorted(
        set(
            re.findall(
                r'`([\w.]+/[\w./-]+|[A-Z]{3,}(?:\.md)?|doc|tests)`',
                README + CONTRIBUTING + SECURITY,
            )
        )
        - {'./state', 'build/html', 'CI'}
    ),
)
def test_path_in_a_document_of_the_repository_exists(path):
    assert (ROOT / path).exists()


def test_the_readme_lists_every_auth_strategy():
    (strategy,) = (option for option in api.OPTS if option.name == 'auth_strategy')
    paragraph = re.search(r'sign-in.*?\n\n', README, re.DOTALL)[0]
    assert set(re.findall(r'^\| `(\w+)` \|', paragraph, re.MULTILINE)) == set(
        strategy.type.choices
    ) - {'noauthv2'}


def ini_files():
    for name, text in PAGES.items():
        for number, block in enumerate(
            re.findall(r'code-block:: ini\n\n((?:   .*\n|\n)+)', text)
        ):
            yield pytest.param(block, id=f'{name} {number}')
    for path in (
        SOURCE / 'examples/folders.conf',
        *(ROOT / 'etc/manila_lite').glob('*.conf.example'),
    ):
        yield pytest.param(path.read_text(), id=path.name)


@pytest.mark.parametrize('text', list(ini_files()))
def test_options_in_shown_files_exist(text):
    known = {
        group and group.name or 'DEFAULT': {o.name for o in opts}
        for group, opts in conf.list_opts()
        if group
    }
    known['DEFAULT'] = LIBRARY_OPTIONS | {
        option.name for group, opts in conf.list_opts() if not group for option in opts
    }
    parser = configparser.RawConfigParser(default_section='')
    parser.read_string(re.sub('^   ', '', text, flags=re.MULTILINE))
    assert parser.sections()
    for section in parser.sections():
        names = set(parser[section])
        if 'share_driver' in names:
            assert names <= known['my_backend'] | {'folders_root'}
        elif section in known:
            assert names <= known[section]


def test_example_driver_passes_the_contract(tmp_path):
    (shown,) = re.findall(
        r'\$ \.venv/bin/pytest (tests/drivers .*)', PAGES['drivers.rst']
    )
    text = (SOURCE / 'examples/folders.conf').read_text()
    (tmp_path / 'folders.conf').write_text(
        text.replace('/srv/folders', str(tmp_path / 'folders'))
    )
    command = shown.replace(' folders.conf', f' {tmp_path}/folders.conf')
    done = subprocess.run(
        [
            sys.executable,
            '-m',
            'pytest',
            '-p',
            'no:cacheprovider',
            *shlex.split(command),
        ],
        cwd=ROOT,
        check=False,
        env=os.environ | {'PYTHONPATH': str(SOURCE / 'examples')},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert int(re.search(r'(\d+) passed', done.stdout)[1]) > 20
