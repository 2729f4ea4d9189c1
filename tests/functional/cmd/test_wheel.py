"""A wheel is all that an installation needs, and wheels all that a node does."""

import configparser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

from packaging import requirements as packages
from packaging.utils import canonicalize_name
import pytest
import requests

from tests.functional.stories import suites
from tests.support import deploy_scripts, requirements, sampling
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


def copy_sources(folder):
    for name in SOURCES:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(
                source,
                target,
                symlinks=True,
                ignore=shutil.ignore_patterns('__pycache__', '*.sample'),
            )
        else:
            shutil.copy(source, target)


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """The wheel of a copy of the sources: the build writes beside them."""
    folder = tmp_path_factory.mktemp('wheel')
    copy_sources(folder / 'sources')
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


def constraints():
    """Return the packages of constraints.txt, and the hashes of each."""
    text = (ROOT / 'constraints.txt').read_text().replace('\\\n', '')
    return [
        (packages.Requirement(pinned), re.findall('--hash=sha256:([0-9a-f]{64})', rest))
        for line in text.splitlines()
        if not line.startswith('#')
        for pinned, rest in [re.split('(?= --hash=)', line, maxsplit=1)]
    ]


def test_constraints_have_a_version_and_hashes_for_every_requirement():
    config = configparser.ConfigParser()
    config.read(ROOT / 'setup.cfg')
    extras = dict(config['options.extras_require'])
    lines = (ROOT / 'requirements.txt').read_text() + '\n'.join(extras.values())
    wanted = [
        packages.Requirement(line.strip())
        for line in (*lines.splitlines(), 'setuptools>=77')
        if line.strip() and not line.strip().startswith('#')
    ]
    assert len(wanted) > 30
    found = {}
    for pinned, hashes in constraints():
        (specifier,) = pinned.specifier
        assert specifier.operator == '==', pinned
        assert hashes, pinned
        found[canonicalize_name(pinned.name)] = specifier.version
    for each in wanted:
        name = canonicalize_name(each.name)
        assert each.specifier.contains(found[name]), (each, found[name])


# The packages of Debian are noted, not installed.
INSTALL = """
RELEASES=$TMP/releases VENV=$TMP/link UNITS=$TMP
install_packages() { printf '%s\\n' "$@" >> "$TMP/packages"; }
install_program
echo "$PROGRAM"
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout of which nodes need one wheel more: all would take a minute."""
    folder = tmp_path / 'checkout'
    copy_sources(folder)
    shutil.copytree(ROOT / 'deploy', folder / 'deploy')
    text = (ROOT / 'constraints.txt').read_text()
    (setuptools,) = re.findall(r'^setuptools==(?:.*\\\n)*.*\n', text, re.M)
    (folder / 'constraints.txt').write_text(setuptools)
    return folder


def deploy(checkout, lines, **variables):
    """Run lines with the functions of deploy; return what they print."""
    return run(
        *('bash', '-c', deploy_scripts.PREPARE + lines),
        env={
            **os.environ,
            'PATH': f'{sys.base_prefix}/bin:{deploy_scripts.PATH}',
            'DEPLOY': str(checkout / 'deploy'),
            'LOCAL_CONF': '/dev/null',
            'TMP': str(checkout.parent),
            **variables,
        },
    ).strip()


@sampling.suite('wheels of nodes', 0)
def test_nodes_install_the_wheels_that_were_built_and_no_others(checkout):
    deploy(checkout, 'build_wheelhouse')
    wheelhouse = checkout / 'deploy/wheelhouse'
    (own,) = wheelhouse.glob('manila_lite-*.whl')
    packages_of_debian = checkout.parent / 'packages'

    # Without an index, without a compiler.
    program = pathlib.Path(
        deploy(
            checkout,
            INSTALL,
            DATABASE_URL='mysql://there/manila',
            PIP_INDEX_URL='http://127.0.0.1:1/',
        ).split()[-1]
    )
    assert (program / 'bin/manila-lite').exists()
    assert (program / 'units/manila-lite-share.service').exists()
    noted = packages_of_debian.read_text().split()
    assert 'libmariadb3' in noted
    assert 'gcc' not in noted

    # Every node has the same program, whatever it uses.
    again = deploy(checkout, INSTALL, DATABASE_URL='postgresql://there/manila')
    assert again == str(program)

    with own.open('ab') as file:
        file.write(b'more')
    (program / '.complete').unlink()
    with pytest.raises(AssertionError, match='DO NOT MATCH THE HASHES'):
        deploy(checkout, INSTALL)

    (checkout / 'manila_lite/release.py').write_text('')
    with pytest.raises(AssertionError, match='run deploy/wheels again'):
        deploy(checkout, INSTALL)
