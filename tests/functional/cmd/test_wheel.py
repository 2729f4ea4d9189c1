"""A wheel is all that an installation needs."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
import requests

from tests.functional.stories import suites
from tests.support import requirements
from tests.support.processes import free_port, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
ETC = ROOT / 'etc/manila_lite'
# Only oslo's generators need them, which write samples into the sources.
GENERATORS = {'config-generator.conf', 'policy-generator.conf'}
SOURCES = (
    'etc',
    'manila_lite',
    'LICENSE',
    'README.md',
    'pyproject.toml',
    'requirements.txt',
    'setup.cfg',
)
NOT_THERE = (
    'No matching distribution found',
    'Could not find a version',
    'Temporary failure in name resolution',
    'Failed to establish a new connection',
)


def run(*words, **options):
    """Run a command; return what it prints."""
    ended = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    printed = ended.stdout + ended.stderr
    unmet = [
        line for line in printed.splitlines() if any(text in line for text in NOT_THERE)
    ]
    if ended.returncode and unmet:
        requirements.missing(f'no package index: {unmet[0].strip()}')
    assert ended.returncode == 0, printed
    return ended.stdout


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """The wheel of a copy of the sources: the build writes beside them."""
    folder = tmp_path_factory.mktemp('wheel')
    for name in SOURCES:
        source, target = ROOT / name, folder / 'sources' / name
        if source.is_dir():
            shutil.copytree(
                source,
                target,
                symlinks=True,
                ignore=shutil.ignore_patterns('__pycache__', '*.sample'),
            )
        else:
            shutil.copy(source, target)
    run(
        *(sys.executable, '-m', 'pip', 'wheel', '--no-deps', '--quiet'),
        *('--wheel-dir', folder, folder / 'sources'),
    )
    (built,) = folder.glob('manila_lite-*.whl')
    return built


def test_it_has_all_files_of_etc(wheel):
    with zipfile.ZipFile(wheel) as archive:
        found = {
            name: archive.read(name).decode()
            for name in archive.namelist()
            if name.startswith('manila_lite/examples/')
        }
    assert found == {
        f'manila_lite/examples/{path.relative_to(ETC)}': path.read_text()
        for path in ETC.rglob('*')
        if path.is_file()
        and path.name not in GENERATORS | {'.gitignore'}
        and path.suffix != '.sample'
    }


@pytest.fixture
def environment(wheel, tmp_path):
    """The programs of an environment with the wheel and nothing else."""
    folder = tmp_path / 'environment'
    run(sys.executable, '-m', 'venv', folder)
    run(folder / 'bin/pip', 'install', '--quiet', wheel)
    return folder / 'bin'


@suites.operation
def test_it_starts_where_nothing_else_is(environment, tmp_path):
    port = free_port()
    url = f'http://127.0.0.1:{port}'
    clean = {'PATH': '/usr/bin:/bin', 'HOME': str(tmp_path)}
    options = {'cwd': tmp_path, 'env': clean}
    example = run(
        environment / 'manila-lite-manage',
        *('example', 'show', 'single-node.conf.example'),
        **options,
    )
    assert example == (ETC / 'single-node.conf.example').read_text()
    with (tmp_path / 'log').open('wb') as log:
        process = subprocess.Popen(
            [environment / 'manila-lite', 'serve', '--port', str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **options,
        )
    try:

        def answers():
            assert process.poll() is None, (tmp_path / 'log').read_text()
            return 'answers at' in (tmp_path / 'log').read_text()

        wait_until(answers, 'it answers')
        for path in ('/v2/shares', '/ui/sign-in', '/metrics', '/v3'):
            assert requests.get(url + path, timeout=30).ok, path
        share = requests.post(
            f'{url}/v2/shares',
            json={'share': {'share_proto': 'NFS', 'size': 1}},
            timeout=30,
        ).json()['share']

        def available():
            shown = requests.get(f'{url}/v2/shares/{share["id"]}', timeout=30)
            return shown.json()['share']['status'] == 'available'

        wait_until(available, 'the share is available')
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
