"""What the previous release knows, and what needs this one."""

import json
import os
import pathlib
import runpy
import subprocess
import sys

import pytest

from manila_lite import exception, release
from manila_lite.rpc import contract, contracts, previous, share
from manila_lite.rpc.contract import Contract, call, durable
from tests.support import previous_release

METHODS = {
    method.kind: method
    for declared in contracts.ALL
    for method in declared.methods.values()
}

LIST_METHODS = """
import importlib
import json
import pkgutil

from manila_lite import rpc
from manila_lite.rpc import contract


def contracts(parent):
    for one in parent.__subclasses__():
        yield one
        yield from contracts(one)


for found in pkgutil.walk_packages(rpc.__path__, f'{rpc.__name__}.'):
    importlib.import_module(found.name)
print(
    json.dumps(
        {
            method.kind: sorted(method.args)
            for one in contracts(contract.Contract)
            for method in getattr(one, 'methods', {}).values()
        }
    )
)
"""


class AccessLaterRpc(Contract):
    """The contract of access rules, as a later release may have it."""

    topic, version, name = share.TOPIC, '1.0', 'access'

    @durable()
    def sync_access(self, ctx, instance_id, colour='red'): ...

    @durable()
    def paint_access(self, ctx, instance_id): ...


class ProbingLaterRpc(Contract):
    topic, version, name = share.TOPIC, '1.0', 'share_migration'

    @call()
    def hear_share_migration(self, ctx, share_id, loudly=False): ...

    @call()
    def see_share_migration(self, ctx, share_id): ...


class Recorded:
    """A transport that records calls."""

    def __init__(self):
        self.calls = []

    def client(self, topic, server, **target):
        return self

    def call(self, ctx, method, args, timeout):
        self.calls.append((method, args))


@pytest.mark.parametrize('kind', sorted(previous.KINDS))
def test_all_that_the_previous_release_sends_is_still_understood(kind):
    method = METHODS[kind]
    assert previous.KINDS[kind] <= set(method.args)
    assert set(method.args) - previous.KINDS[kind] <= method.defaults.keys()


@pytest.mark.parametrize(
    'method, args, needed',
    [
        ('sync_access', {}, None),
        ('sync_access', {'colour': 'red'}, None),
        ('sync_access', {'colour': 'blue'}, release.NUMBER),
        ('paint_access', {}, release.NUMBER),
    ],
)
def test_only_what_is_new_needs_this_release(method, args, needed):
    declared = AccessLaterRpc.methods[method]
    assert declared.needed_release({'instance_id': 'i'} | args) == needed


@pytest.fixture
def transport():
    return Recorded()


@pytest.fixture
def client(transport):
    """A client that finds the previous release on one host."""
    found = {'node@old': previous.RELEASE, 'node@new': release.NUMBER}

    def oldest(topic, host):
        assert topic == share.TOPIC
        return found.get(host)

    return contract.Client(ProbingLaterRpc, None, transport, oldest_release=oldest)


def test_new_calls_are_not_sent_to_an_older_process(client, transport):
    old = client.on('node@old#pool')
    with pytest.raises(exception.NewerReleaseNeeded) as refused:
        old.see_share_migration(None, share_id='s')
    assert 'node@old' in str(refused.value)
    assert refused.value.code == 503
    with pytest.raises(exception.NewerReleaseNeeded):
        old.hear_share_migration(None, share_id='s', loudly=True)
    assert transport.calls == []


def test_new_calls_are_sent_where_all_processes_know_them(client, transport):
    for host in ('node@new', 'node@silent'):
        client.on(host).see_share_migration(None, share_id='s')
    assert transport.calls == [('see_share_migration', {'share_id': 's'})] * 2


def test_old_calls_are_sent_as_the_previous_release_sends_them(client, transport):
    client.on('node@old').hear_share_migration(None, share_id='s')
    assert transport.calls == [('hear_share_migration', {'share_id': 's'})]


def test_record_of_the_previous_release_is_that_of_its_code(tmp_path):
    folder = previous_release.install(tmp_path / 'old')
    listed = subprocess.run(
        [sys.executable, '-c', LIST_METHODS],
        env={**os.environ, 'PYTHONPATH': str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(listed.stdout) == {
        kind: sorted(args) for kind, args in previous.KINDS.items()
    }


def test_record_is_as_the_tool_writes_it():
    written = pathlib.Path(previous.__file__)
    tool = written.parents[2] / 'tools/record_contracts.py'
    text = runpy.run_path(str(tool))['text']
    assert text(previous.RELEASE, previous.KINDS) == written.read_text()
