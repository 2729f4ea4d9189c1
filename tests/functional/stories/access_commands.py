"""The commands for access rules and resource locks, as parts of a walk."""

import typing

COMMAND = 'share access'
LOCK = 'share lock'


def rules(walk: typing.Any) -> None:
    """Rules of the share of the walk come, are looked at, and go."""
    cli, share = walk.cli, walk.name
    locked = _add(walk, share)
    made = cli(
        f'{COMMAND} create', share, 'ip', '10.0.0.0/24', '--access-level', 'ro'
    )
    assert made['access_level'] == 'ro'
    cli(f'{COMMAND} create', share, 'user', 'alice')
    cli(f'{COMMAND} create', share, 'ip', '10.0.0.0/24', code=1)
    walk.quiet()
    assert _clients(cli(f'{COMMAND} list', share)) == {
        'alice': ('user', 'rw', 'active'),
        '10.0.0.0/24': ('ip', 'ro', 'active'),
        '10.0.0.1': ('ip', 'rw', 'active'),
    }
    if walk.has('2.45'):
        _shown_and_set(walk, made['id'])
    if walk.has('2.82'):
        _narrowed(walk, share)
        cli(f'{COMMAND} delete', share, locked, code=1)
        cli(f'{COMMAND} delete', share, locked, '--unrestrict', '--wait')
    for rule in cli(f'{COMMAND} list', share):
        cli(f'{COMMAND} delete', share, rule['ID'])
    walk.quiet()
    assert cli(f'{COMMAND} list', share) == []


def _add(walk, share) -> str:
    """A rule with all that the version knows of; its id."""
    made = walk.cli(
        f'{COMMAND} create',
        share,
        'ip',
        '10.0.0.1',
        *(('--properties', 'for=all', '--wait') if walk.has('2.45') else ()),
        *(
            ('--lock-visibility', '--lock-deletion', '--lock-reason', 'mine')
            if walk.has('2.82')
            else ()
        ),
    )
    if walk.has('2.45'):
        assert (made['state'], made['properties']) == ('active', 'for : all')
    return made['id']


def _clients(listed) -> dict:
    return {
        one['Access To']: (
            one['Access Type'],
            one['Access Level'],
            one['State'],
        )
        for one in listed
    }


def _shown_and_set(walk, access_id) -> None:
    cli = walk.cli
    cli(f'{COMMAND} set', access_id, '--property', 'a=b', '--property', 'c=d')
    cli(f'{COMMAND} unset', access_id, '--property', 'c')
    shown = cli(f'{COMMAND} show', access_id)
    assert (shown['id'], shown['access_to'], shown['properties']) == (
        access_id,
        '10.0.0.0/24',
        'a : b',
    )
    (found,) = cli(f'{COMMAND} list', walk.name, '--properties', 'a=b')
    assert found['ID'] == access_id
    if walk.has('2.88'):
        cli(f'{COMMAND} set', access_id, '--access-level', 'rw')
        walk.quiet()
        shown = cli(f'{COMMAND} show', access_id)
        assert (shown['access_level'], shown['state']) == ('rw', 'active')


def _narrowed(walk, share) -> None:
    """Each filter alone, and what a filter leaves out."""
    for criteria, expected in (
        (('--access-type', 'user'), ['alice']),
        (('--access-type', 'ip', '--access-to', '10.0.0.1'), ['10.0.0.1']),
        (('--access-level', 'ro'), []),
        (('--access-key', 'none'), []),
    ):
        listed = walk.cli(f'{COMMAND} list', share, *criteria)
        assert list(_clients(listed)) == expected, criteria


def locks(walk: typing.Any) -> None:
    """A locked share stays until its last lock is lifted."""
    if not walk.has('2.81'):
        return
    cli, share = walk.cli, walk.name
    made = cli(f'{LOCK} create', share, 'share', '--reason', 'mounted')
    assert (made['resource_action'], made['lock_reason']) == (
        'delete',
        'mounted',
    )
    rule = cli(f'{COMMAND} create', share, 'ip', '10.0.0.9')['id']
    hidden = cli(
        f'{LOCK} create', rule, 'access_rule', '--resource-action', 'show'
    )
    cli('share delete', share, code=1)
    for criteria in (
        ('--resource', share, '--resource-type', 'share'),
        ('--id', made['id'], '--detailed'),
        (
            '--all-projects',
            '--project',
            walk.project_id,
            '--user',
            walk.user_id,
            '--resource-action',
            'delete',
        ),
        (
            '--context',
            'admin',
            '--sort-key',
            'created_at',
            '--sort-dir',
            'asc',
            '--limit',
            '1',
        ),
        ('--since', '2000-01-01', '--offset', '1'),
    ):
        assert [one['ID'] for one in cli(f'{LOCK} list', *criteria)] == [
            made['id']
        ], criteria
    assert cli(f'{LOCK} list', '--before', '2000-01-01') == []
    cli(f'{LOCK} set', made['id'], '--reason', 'in use')
    assert cli(f'{LOCK} show', made['id'])['Lock Reason'] == 'in use'
    cli(f'{LOCK} unset', made['id'], '--reason')
    cli(f'{LOCK} set', hidden['id'], '--resource-action', 'delete')
    shown = cli(f'{LOCK} show', hidden['id'])
    assert (shown['Resource Action'], shown['Lock Reason']) == ('delete', None)
    cli(f'{COMMAND} delete', share, rule, code=1)
    cli(f'{LOCK} delete', made['id'], hidden['id'])
    assert cli(f'{LOCK} list') == []
    cli(f'{COMMAND} delete', share, rule)
    walk.quiet()
