"""The previous release, from the history of this repository.

Its processes run with the libraries that are installed for this release: a
node gets both with one upgrade, or keeps both.
"""

import configparser
import pathlib
import shutil
import subprocess

from tests.support import requirements

COMMIT = 'a842f31fd958f3ab35de978409f96a03b305f13d'
"""The commit of which release 1 was made; changed with each release."""

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = 'manila_lite'


def install(folder: pathlib.Path) -> pathlib.Path:
    """Put the release into a folder for PYTHONPATH, and return that.

    Without the commit the test is skipped, or fails if CI is set.
    """
    for program in ('git', 'tar'):
        if shutil.which(program) is None:
            requirements.missing(f'{program} is not installed')
    folder.mkdir(parents=True)
    archive = folder / 'release.tar'
    packed = subprocess.run(
        ['git', 'archive', '--output', archive, COMMIT, PACKAGE, 'setup.cfg'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if packed.returncode:
        requirements.missing(
            f'commit {COMMIT[:7]}, the previous release, is not in the '
            f'history of this clone: {packed.stderr.strip()}'
        )
    subprocess.run(['tar', '--extract', '--file', archive], cwd=folder, check=True)
    archive.unlink()
    _describe(folder)
    return folder


def _describe(folder: pathlib.Path) -> None:
    """Write what an installer would: the version and the entry points.

    The folder precedes the installed packages, so these are found first.
    """
    declared = configparser.ConfigParser(interpolation=None)
    declared.read(folder / 'setup.cfg')
    version = declared['metadata']['version']
    described = folder / f'{PACKAGE}-{version}.dist-info'
    described.mkdir()
    (described / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n'
    )
    (described / 'entry_points.txt').write_text(
        ''.join(
            f'[{group}]\n{lines}\n'
            for group, lines in declared['options.entry_points'].items()
        )
    )
