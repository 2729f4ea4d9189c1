"""`manila-lite-manage example`: the files to start from."""

import pathlib

import pytest

from tests.support.manage_command import manage

ETC = pathlib.Path(__file__).parents[3] / 'etc/manila_lite'
NOT_LISTED = {
    '.gitignore',
    'README.md',
    'config-generator.conf',
    'policy-generator.conf',
}
FILES = {
    str(path.relative_to(ETC))
    for path in ETC.rglob('*')
    if path.is_file() and path.name not in NOT_LISTED and path.suffix != '.sample'
}


def test_every_file_is_listed_with_its_content():
    head, *rows = manage('example', 'list').splitlines()
    assert head.split() == ['name', 'content']
    found = dict(row.split(maxsplit=1) for row in rows)
    assert {name for name in found if not name.endswith('.sample')} == FILES


@pytest.mark.parametrize('name', sorted(FILES))
def test_file_is_printed_as_it_is(name):
    expected = (ETC / name).read_text()
    for given in (name, pathlib.Path(name).name):
        assert manage('example', 'show', given) == expected


@pytest.mark.parametrize('name', ['missing', 'README.md', '../../setup.cfg'])
def test_other_files_are_not_printed(name):
    output = manage('example', 'show', name, code=1)
    assert output.splitlines() == [
        f'manila-lite-manage: Example {name} could not be found.'
    ]
