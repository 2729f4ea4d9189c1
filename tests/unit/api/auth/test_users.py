"""The file of users can be read back, and no change is lost."""

import concurrent.futures
import os
import stat

from oslo_config import cfg
import pytest

from manila_lite import exception
from manila_lite.api.auth import users

CHEAP = 4  # the least cost bcrypt allows
ALICE = {
    'name': 'alice',
    'password': 'wonderland',
    'user_id': 'u1',
    'project_id': 'a1',
    'roles': ['member'],
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / 'users'


def add(file, **values):
    return users.add(str(file), **ALICE | values, cost=CHEAP)


def test_added_user_is_read(file):
    added = add(file, roles=['Member', 'service'])
    assert users.read(str(file)) == {'alice': added}
    assert (added.user_id, added.project_id) == ('u1', 'a1')
    assert added.roles == ('member', 'service')


def test_password_is_verified_and_not_written(file):
    alice = add(file)
    assert users.verify_password(alice, b'wonderland')
    assert not users.verify_password(alice, b'Wonderland')
    assert 'wonderland' not in file.read_text()
    assert alice.hash not in repr(alice)


@pytest.mark.parametrize('password', [b'', b'x' * 73, b'\0', b'\xff'])
def test_unusual_passwords_are_wrong(file, password):
    assert not users.verify_password(add(file), password)


def test_unknown_user_has_no_password():
    assert not users.verify_password(None, b'wonderland')


def test_longest_password_is_compared_to_its_end(file):
    alice = add(file, password='x' * users.MAX_PASSWORD_BYTES)
    assert users.verify_password(alice, b'x' * users.MAX_PASSWORD_BYTES)
    assert not users.verify_password(alice, b'x' * 71 + b'y')


def test_only_the_owner_reads_the_file(file):
    add(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    add(file, name='bob')
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_no_temporary_files_are_left(file):
    add(file)
    users.remove(str(file), 'alice')
    assert os.listdir(file.parent) == ['users']


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives files away')
def test_file_keeps_its_owner(file):
    add(file)
    os.chown(file, 1234, 5678)
    add(file, name='bob')
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 5678)


@pytest.mark.parametrize(
    'given, listed',
    [
        (['admin'], ['admin', 'member', 'reader']),
        (['member'], ['member', 'reader']),
        (['reader'], ['reader']),
        (['service', 'member'], ['member', 'reader', 'service']),
    ],
)
def test_roles_imply_lesser_ones(file, given, listed):
    assert add(file, roles=given).all_roles == listed


@pytest.mark.parametrize(
    'values',
    [
        {'name': ''},
        {'name': 'a:b'},
        {'name': 'a b'},
        {'name': '#alice'},
        {'name': 'alice\nbob'},
        {'name': 'é'},
        {'name': 'a' * 256},
        {'user_id': ''},
        {'user_id': 'u:1'},
        {'project_id': ''},
        {'project_id': 'a/b'},
        {'roles': []},
        {'roles': ['']},
        {'roles': ['a,b']},
        {'password': ''},
        {'password': 'x' * 73},
    ],
    ids=str,
)
def test_malformed_values_are_refused(file, values):
    with pytest.raises(exception.InvalidInput):
        add(file, **values)
    assert not file.exists()


def test_duplicate_name_is_refused(file):
    add(file)
    before = file.read_text()
    with pytest.raises(exception.InvalidInput, match='alice exists'):
        add(file, password='other')
    assert file.read_text() == before


def test_only_the_removed_user_is_gone(file):
    add(file, name='al')
    add(file)
    users.remove(str(file), 'al')
    assert list(users.read(str(file))) == ['alice']


@pytest.mark.parametrize('name', ['bob', '# kept', '#', ''])
def test_removing_an_unknown_user_is_an_error(file, name):
    file.write_text('# kept: yes\n#:\n\n')
    with pytest.raises(exception.NotFound):
        users.remove(str(file), name)
    assert file.read_text() == '# kept: yes\n#:\n\n'


def test_comments_are_preserved(file):
    file.write_text('# the red queen keeps this file\n\n')
    add(file)
    assert file.read_text().startswith('# the red queen keeps this file\n\n')
    assert list(users.read(str(file))) == ['alice']


def test_concurrent_additions_are_all_stored(file):
    names = [f'user{number}' for number in range(16)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add(file, name=name), names))
    assert sorted(users.read(str(file))) == sorted(names)


HASH = '$2b$04$' + 'a' * 21 + 'u' + 'b' * 31


@pytest.mark.parametrize(
    'line',
    [
        'alice',
        f'alice:{HASH}:u1:a1',
        f'alice:{HASH}:u1:a1:member:more',
        f':{HASH}:u1:a1:member',
        f'alice:{HASH}:u1:a1:',
        'alice:wonderland:u1:a1:member',
        f'alice:{HASH[:-1]}:u1:a1:member',
        'alice:' + HASH.replace('$04', '$03') + ':u1:a1:member',
        'alice:' + HASH.replace('u', 'z') + ':u1:a1:member',
    ],
)
def test_malformed_line_is_reported_by_number_only(file, line):
    file.write_text(f'# one\nbob:{HASH}:u2:a2:member\n{line}\n')
    with pytest.raises(cfg.ConfigFileParseError, match='line 3') as error:
        users.read(str(file))
    assert 'wonderland' not in str(error.value)
    assert HASH[:-1] not in str(error.value)


def test_user_named_twice_is_an_error(file):
    file.write_text(f'bob:{HASH}:u2:a2:member\n' * 2)
    with pytest.raises(cfg.ConfigFileParseError, match='line 2 names bob'):
        users.read(str(file))


def test_bytes_that_are_not_text_are_an_error(file):
    file.write_bytes(b'\xff\xfe')
    with pytest.raises(cfg.ConfigFileParseError, match='line 1'):
        users.read(str(file))


def test_hashes_of_other_tools_are_accepted(file):
    alice = add(file)
    file.write_text(file.read_text().replace('$2b$', '$2y$'))
    other = users.read(str(file))['alice']
    assert other.hash != alice.hash
    assert users.verify_password(other, b'wonderland')


def test_missing_file_is_an_os_error(file):
    with pytest.raises(FileNotFoundError):
        users.read(str(file))
