"""The commands for access rules and resource locks, as parts of a story."""

import typing

COMMAND = 'share access'
LOCK = 'share lock'


def rules(story: typing.Any) -> None:
    """Create, list, change and delete access rules of the share."""
    cli, share = story.cli, story.name
    locked = _create_locked(story, share)
    created = cli(
        f'{COMMAND} create', share, 'ip', '10.0.0.0/24', '--access-level', 'ro'
    )
    assert created['access_level'] == 'ro'
    cli(f'{COMMAND} create', share, 'user', 'alice')
    cli(f'{COMMAND} create', share, 'ip', '10.0.0.0/24', code=1)
    story.wait_idle()
    assert _clients(cli(f'{COMMAND} list', share)) == {
        'alice': ('user', 'rw', 'active'),
        '10.0.0.0/24': ('ip', 'ro', 'active'),
        '10.0.0.1': ('ip', 'rw', 'active'),
    }
    if story.has('2.45'):
        _check_show_and_set(story, created['id'])
    if story.has('2.82'):
        _check_filters(story, share)
        cli(f'{COMMAND} delete', share, locked, code=1)
        cli(f'{COMMAND} delete', share, locked, '--unrestrict', '--wait')
    for rule in cli(f'{COMMAND} list', share):
        cli(f'{COMMAND} delete', share, rule['ID'])
    story.wait_idle()
    assert cli(f'{COMMAND} list', share) == []


def _create_locked(story, share) -> str:
    """Create a rule with all options of the version; return its id."""
    created = story.cli(
        f'{COMMAND} create',
        share,
        'ip',
        '10.0.0.1',
        *(('--properties', 'for=all', '--wait') if story.has('2.45') else ()),
        *(
            ('--lock-visibility', '--lock-deletion', '--lock-reason', 'mine')
            if story.has('2.82')
            else ()
        ),
    )
    if story.has('2.45'):
        assert (created['state'], created['properties']) == ('active', 'for : all')
    return created['id']


def _clients(rules_listed) -> dict:
    return {
        one['Access To']: (one['Access Type'], one['Access Level'], one['State'])
        for one in rules_listed
    }


def _check_show_and_set(story, access_id) -> None:
    cli = story.cli
    cli(f'{COMMAND} set', access_id, '--property', 'a=b', '--property', 'c=d')
    cli(f'{COMMAND} unset', access_id, '--property', 'c')
    shown = cli(f'{COMMAND} show', access_id)
    assert (shown['id'], shown['access_to'], shown['properties']) == (
        access_id,
        '10.0.0.0/24',
        'a : b',
    )
    (found,) = cli(f'{COMMAND} list', story.name, '--properties', 'a=b')
    assert found['ID'] == access_id
    if story.has('2.88'):
        cli(f'{COMMAND} set', access_id, '--access-level', 'rw')
        story.wait_idle()
        shown = cli(f'{COMMAND} show', access_id)
        assert (shown['access_level'], shown['state']) == ('rw', 'active')


def _check_filters(story, share) -> None:
    """Filter the list of rules by each criterion."""
    for criteria, expected in (
        (('--access-type', 'user'), ['alice']),
        (('--access-type', 'ip', '--access-to', '10.0.0.1'), ['10.0.0.1']),
        (('--access-level', 'ro'), []),
        (('--access-key', 'none'), []),
    ):
        rules_listed = story.cli(f'{COMMAND} list', share, *criteria)
        assert list(_clients(rules_listed)) == expected, criteria


def locks(story: typing.Any) -> None:
    """A locked share cannot be deleted until its last lock is removed."""
    if not story.has('2.81'):
        return
    cli, share = story.cli, story.name
    created = cli(f'{LOCK} create', share, 'share', '--reason', 'mounted')
    assert (created['resource_action'], created['lock_reason']) == ('delete', 'mounted')
    rule = cli(f'{COMMAND} create', share, 'ip', '10.0.0.9')['id']
    hidden = cli(f'{LOCK} create', rule, 'access_rule', '--resource-action', 'show')
    cli('share delete', share, code=1)
    for criteria in (
        ('--resource', share, '--resource-type', 'share'),
        ('--id', created['id'], '--detailed'),
        (
            '--all-projects',
            '--project',
            story.project_id,
            '--user',
            story.user_id,
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
            created['id']
        ], criteria
    assert cli(f'{LOCK} list', '--before', '2000-01-01') == []
    cli(f'{LOCK} set', created['id'], '--reason', 'in use')
    assert cli(f'{LOCK} show', created['id'])['Lock Reason'] == 'in use'
    cli(f'{LOCK} unset', created['id'], '--reason')
    cli(f'{LOCK} set', hidden['id'], '--resource-action', 'delete')
    shown = cli(f'{LOCK} show', hidden['id'])
    assert (shown['Resource Action'], shown['Lock Reason']) == ('delete', None)
    cli(f'{COMMAND} delete', share, rule, code=1)
    cli(f'{LOCK} delete', created['id'], hidden['id'])
    assert cli(f'{LOCK} list') == []
    cli(f'{COMMAND} delete', share, rule)
    story.wait_idle()
