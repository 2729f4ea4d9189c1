"""`manila-lite-manage recovery`: its arguments, output and requests.

The recovery story runs the command itself.
"""

import argparse
import functools

import pytest

from manila_lite import exception
from manila_lite.cmd import recovery as commands
from tests.support.rescues import strand


@pytest.fixture
def cloud(build_cloud):
    cloud = build_cloud(backends=['alpha'])
    cloud.settle()
    return cloud


@pytest.fixture
def stuck(cloud):
    """The id of a share instance that is in flight without work."""
    return strand(cloud, cloud.create_share(size=2), 'reset_migrating')


@pytest.fixture
def recovery(cloud):
    """`recovery(verb, ...)`: the rows or the text of a command."""
    verbs = {
        name: argparse.ArgumentParser(prog=name)
        for name in ('list', 'preview', 'log', 'run')
    }
    commands.add_to(verbs)
    call = {
        'list': functools.partial(commands.in_flight, candidates=False),
        'preview': functools.partial(commands.in_flight, candidates=True),
        'log': commands.log,
        'run': commands.run,
    }

    def run(verb, *args):
        return call[verb](cloud.db, verbs[verb].parse_args(args))

    return run


@pytest.mark.parametrize('verb', ['list', 'preview'])
def test_stuck_resources_are_shown_and_not_changed(recovery, stuck, verb):
    for _ in range(2):
        (shown,) = recovery(verb)
        assert 0 <= shown.pop('age') < 60
        assert (
            shown
            | {
                'resource_type': 'share_instance',
                'resource_id': stuck,
                'status': 'migrating',
                'host': 'node@alpha#pool',
                'holder': 'nobody',
                'owner': None,
                'next_step': ('it is given up: migration_lost, which ends in error'),
            }
            == shown
        )
    assert recovery('log') == []


def test_the_preview_shows_only_what_a_pass_would_rescue(recovery, cloud):
    cloud.api.create(size=3)
    assert len(recovery('list')) == 1
    assert recovery('preview') == []


@pytest.mark.parametrize(
    'args, count',
    [
        (['--resource-type', 'share_instance'], 1),
        (['--resource-type', 'access_rule'], 0),
        (['--host', 'node@alpha'], 1),
        (['--host', 'node@beta'], 0),
    ],
)
def test_lists_can_be_filtered(recovery, stuck, cloud, args, count):
    assert len(recovery('list', *args)) == count
    recovery('run')
    cloud.run_pending()
    assert len(recovery('log', *args)) == count


@pytest.mark.parametrize(
    'args, answer',
    [
        ([], 'Requested a pass of node@alpha.'),
        (['--host', 'node@alpha'], 'Requested a pass of node@alpha.'),
        (['share_instance', None], 'Requested rescue of share_instance'),
    ],
)
def test_requests_are_carried_out_and_recorded(recovery, stuck, cloud, args, answer):
    assert answer in recovery('run', *[arg or stuck for arg in args])
    cloud.run_pending()
    assert recovery('list') == []
    (decision,) = recovery('log')
    assert (
        decision['resource_id'],
        decision['status_before'],
        decision['action'],
        decision['status_after'],
    ) == (stuck, 'migrating', 'given up', 'error')
    assert decision['asked_by'].endswith('(manila-lite-manage)')
    assert decision['made_by'].startswith('manila-share@node@alpha:')
    assert recovery('log', '--resource-id', stuck) == [decision]
    assert recovery('log', '--resource-id', 'other') == []


@pytest.mark.parametrize(
    'args, error',
    [
        (['--host', 'node@nowhere'], exception.ServiceNotFound),
        (['share_instance', 'nothing'], exception.ResourceNotFound),
        (['share_instance'], exception.InvalidInput),
    ],
)
def test_unknown_hosts_and_resources_are_refused(recovery, stuck, cloud, args, error):
    with pytest.raises(error):
        recovery('run', *args)
    assert not cloud.step()
