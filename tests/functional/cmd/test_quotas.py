"""`manila-lite-manage quota`."""

import json

from tests.support.manage_command import columns, manage


def test_quotas_are_shown_and_set(state):
    where = ('--state-dir', state)
    assert columns(manage('quota', 'set', 'red', '--shares', '7', *where))[:2] == [
        ['resource', 'limit'],
        ['shares', '7'],
    ]
    manage('quota', 'set', 'red', '--user', 'ann', '--shares', '3', *where)
    for scope, shares in ((('red',), 7), (('red', '--user', 'ann'), 3)):
        found = json.loads(manage('quota', 'show', *scope, '--json', *where))
        assert found[0] == {
            'resource': 'shares',
            'limit': shares,
            'in_use': 0,
            'reserved': 0,
        }
    output = manage(
        'quota', 'set', 'red', '--user', 'ann', '--shares', '8', *where, code=1
    )
    assert 'shares may not exceed the limit of the project, 7' in output


def test_default_quotas_are_shown_and_set(state, configured):
    where = (
        '--state-dir',
        state,
        *configured('[quota]\nshares = 11\ngigabytes = 12\n'),
    )

    def shown(*scope):
        found = json.loads(manage('quota', 'show', *scope, '--json', *where))
        return {row['resource']: row['limit'] for row in found}

    assert (shown('--default')['shares'], shown('red')['shares']) == (11, 11)
    manage('quota', 'set', '--default', '--shares', '5', *where)
    for scope in ('--default', 'red'):
        assert shown(scope)['shares'] == 5
        assert shown(scope)['gigabytes'] == 12


def test_quotas_of_an_unknown_type_are_refused(state):
    assert 'gold' in manage(
        'quota', 'show', 'red', '--share-type', 'gold', '--state-dir', state, code=1
    )
