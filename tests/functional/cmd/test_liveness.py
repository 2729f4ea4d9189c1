"""Killed processes are found by their liveness locks; live ones are not."""

import pathlib
import subprocess
import sys

import pytest

from manila_lite.cmd import share

ROOT = pathlib.Path(__file__).parents[3]
PROCESS = """
import pathlib, sys
from manila_lite.cmd import share
forget = share.hold_liveness_lock(pathlib.Path(sys.argv[1]), sys.argv[2])
print('here', flush=True)
sys.stdin.read()
forget()
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / 'alive'


@pytest.fixture
def live(folder):
    """Start processes that live until they are killed or end on EOF."""
    started = []

    def start(id):
        process = subprocess.Popen(
            [sys.executable, '-c', PROCESS, folder, id],
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


def dead(folder):
    found = []
    share.reap_dead(folder, found.append)
    return found


def test_only_killed_processes_are_reaped_and_only_once(folder, live):
    first, second, third = (live(id) for id in ('one', 'two', 'three'))
    assert dead(folder) == []
    third.communicate('')  # ends regularly and removes its file
    first.kill()
    first.wait()
    assert dead(folder) == ['one']
    assert dead(folder) == []
    second.kill()
    second.wait()
    assert dead(folder) == ['two']
    assert list(folder.iterdir()) == []


def test_a_failed_takeover_is_repeated(folder, live):
    process = live('one')
    process.kill()
    process.wait()
    with pytest.raises(KeyError):
        share.reap_dead(folder, {}.__getitem__)
    assert dead(folder) == ['one']


def test_processes_of_other_machines_are_left_alone(folder, monkeypatch):
    folder.mkdir()
    monkeypatch.setattr('socket.gethostname', lambda: 'elsewhere')
    (folder / 'here_one').touch()
    (folder / 'elsewhere_two').touch()
    assert dead(folder) == ['two']
    assert [file.name for file in folder.iterdir()] == ['here_one']


def test_a_service_starts_without_its_liveness_lock(tmp_path, caplog):
    (tmp_path / 'file').touch()
    forget = share.hold_liveness_lock(tmp_path / 'file', 'one')
    assert 'waits for the lease' in caplog.text
    forget()
    assert dead(tmp_path / 'file') == []
