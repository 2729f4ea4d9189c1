"""A process that was killed is known to be over; one that lives is not."""

import pathlib
import subprocess
import sys

import pytest

from manila_lite.cmd import liveness

ROOT = pathlib.Path(__file__).parents[3]
LIVE = """
import pathlib, sys
from manila_lite.cmd import liveness
with liveness.hold_lock(pathlib.Path(sys.argv[1]), sys.argv[2]):
    print('here', flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / 'alive'


@pytest.fixture
def live(folder):
    """Starts processes that live until they are killed or told to end."""
    started = []

    def start(id):
        process = subprocess.Popen(
            [sys.executable, '-c', LIVE, folder, id],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == 'here\n'
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def over(folder):
    found = []
    liveness.reap_dead(folder, found.append)
    return found


def test_only_the_killed_are_over_and_that_once(folder, live):
    first, second, third = (live(id) for id in ('one', 'two', 'three'))
    assert over(folder) == []
    third.communicate('')  # ends as it should, and leaves nothing
    first.kill()
    first.wait()
    assert over(folder) == ['one']
    assert over(folder) == []
    second.kill()
    second.wait()
    assert over(folder) == ['two']
    assert list(folder.iterdir()) == []


def test_who_dies_over_it_is_followed_by_another(folder, live):
    process = live('one')
    process.kill()
    process.wait()
    with pytest.raises(KeyError):
        liveness.reap_dead(folder, {}.__getitem__)
    assert over(folder) == ['one']


def test_processes_of_other_machines_are_left_alone(folder, monkeypatch):
    folder.mkdir()
    monkeypatch.setattr('socket.gethostname', lambda: 'elsewhere')
    (folder / 'here_one').touch()
    (folder / 'elsewhere_two').touch()
    assert over(folder) == ['two']
    assert [file.name for file in folder.iterdir()] == ['here_one']


def test_service_lives_where_it_can_tell_nobody(tmp_path, caplog):
    (tmp_path / 'file').touch()
    with liveness.hold_lock(tmp_path / 'file', 'one'):
        assert 'after the lease' in caplog.text
    assert over(tmp_path / 'file') == []
