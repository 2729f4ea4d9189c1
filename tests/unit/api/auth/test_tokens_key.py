"""The key is created once, readable for its owner only."""

from concurrent import futures
import os
import stat
import threading

from oslo_config import cfg
import pytest

from manila_lite.api.auth import tokens


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / 'new' / 'key')


def test_key_is_created_once_for_its_owner_only(path):
    key = tokens.read_key(path)
    assert len(key) == tokens.KEY_BYTES
    assert tokens.read_key(path) == key
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(os.path.dirname(path)) == ['key']


def test_processes_that_start_together_have_one_key(path):
    together = threading.Barrier(8)

    def start(_):
        together.wait(60)
        return tokens.read_key(path)

    with futures.ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(start, range(8)))) == 1


def test_key_that_cannot_be_created_names_the_option(tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(cfg.ConfigFileParseError, match='token_key_file'):
        tokens.read_key(str(tmp_path / 'file' / 'key'))


@pytest.mark.parametrize('mode', [0o640, 0o604, 0o620, 0o602])
def test_key_that_others_may_use_is_refused(path, mode):
    tokens.read_key(path)
    os.chmod(path, mode)
    with pytest.raises(cfg.ConfigFileParseError, match='0600'):
        tokens.read_key(path)


@pytest.mark.parametrize('content', ['', 'c2hvcnQ=', 'secret ' * 20, '\xff'])
def test_other_content_is_refused_and_not_shown(path, content):
    tokens.read_key(path)
    with open(path, 'w', encoding='latin-1') as file:
        file.write(content)
    with pytest.raises(cfg.ConfigFileParseError, match='not a key') as error:
        tokens.read_key(path)
    assert 'secret' not in str(error.value)
