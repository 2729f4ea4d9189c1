"""The commands for share groups, as a part of a story."""

import typing

COMMAND = 'share group'


def groups(story: typing.Any) -> None:
    """Create a group with a share, change, list and delete it."""
    cli, name = story.cli, f'group-{story.version}'
    group_type, share_type = f'of-{name}', f'in-{name}'
    cli(
        'share type create',
        *(share_type, 'false', '--snapshot-support', 'true'),
        *('--create-share-from-snapshot-support', 'true'),
    )
    cli(f'{COMMAND} type create', group_type, share_type)
    member = cli('share type show', share_type)['id']
    options = ('--share-group-type', group_type, '--share-types', member)
    created = cli(
        f'{COMMAND} create',
        *('--name', name, '--description', 'first', *options, '--wait'),
    )
    assert created['status'] == 'available'
    cli(f'{COMMAND} set', name, '--description', 'second')
    assert cli(f'{COMMAND} show', name)['description'] == 'second'
    cli(f'{COMMAND} unset', name, '--description')
    assert not cli(f'{COMMAND} show', name)['description']
    _check_lists(story, created)
    _share_in_group(story, name, share_type)
    cli(f'{COMMAND} set', name, '--status', 'error')
    assert cli(f'{COMMAND} show', name)['status'] == 'error'
    cli(f'{COMMAND} delete', name, '--wait')
    cli(f'{COMMAND} create', '--name', name, *options, '--wait')
    cli(f'{COMMAND} delete', name, '--force')
    assert cli(f'{COMMAND} list') == []
    cli(f'{COMMAND} type delete', group_type)
    cli('share type delete', share_type)


def _share_in_group(story: typing.Any, group: str, share_type: str) -> None:
    cli, share = story.cli, f'share-in-{group}'
    cli(
        'share create',
        *('NFS', '1', '--name', share, '--share-type', share_type),
        *('--share-group', group, '--wait'),
    )
    listed = cli('share list', '--share-group', group)
    assert [one['Name'] for one in listed] == [share]
    cli(f'{COMMAND} delete', group, code=1)
    _snapshots(story, group, share)
    cli('share delete', share, '--share-group', group, '--wait')


def _check_lists(story: typing.Any, created: dict) -> None:
    name = created['name']
    for options in (
        (),
        ('--all-projects',),
        ('--name', name),
        ('--status', 'available'),
        ('--host', created['host']),
        ('--share-group-type', created['share_group_type_id']),
        ('--limit', '1'),
        ('--sort', 'name:asc'),
        *((('--name~', 'group'),) if story.has('2.36') else ()),
    ):
        listed = story.cli(f'{COMMAND} list', *options)
        assert [one['Name'] for one in listed] == [name], options
    assert story.cli(f'{COMMAND} list', '--name', 'other') == []


def _snapshots(story: typing.Any, group: str, share: str) -> None:
    """Take a snapshot of the group, change, list and delete it."""
    cli, command, name = story.cli, f'{COMMAND} snapshot', f'of-{group}'
    created = cli(f'{command} create', group, '--name', name, '--wait')
    assert created['status'] == 'available'
    cli(f'{command} set', name, '--description', 'second')
    assert cli(f'{command} show', name)['description'] == 'second'
    cli(f'{command} unset', name, '--description')
    (member,) = cli(f'{command} members list', name)
    assert member['Share ID'] == cli('share show', share)['id']
    for options in (
        (),
        ('--all-projects',),
        ('--name', name),
        ('--status', 'available'),
        ('--share-group', group),
        ('--limit', '1'),
        ('--sort', 'name:asc'),
        ('--detailed',),
    ):
        listed = cli(f'{command} list', *options)
        assert [one['Name'] for one in listed] == [name], options
    cli('share delete', share, '--share-group', group, code=1)
    _copy(story, name)
    cli(f'{command} delete', name, '--wait')
    cli(f'{command} create', group, '--name', name, '--wait')
    cli(f'{command} set', name, '--status', 'error')
    cli(f'{command} delete', name, '--force')
    assert cli(f'{command} list') == []


def _copy(story: typing.Any, snapshot: str) -> None:
    """Create a group from a snapshot with one member, and delete it."""
    cli, copy = story.cli, f'copy-{snapshot}'
    cli(
        f'{COMMAND} create',
        *('--source-share-group-snapshot', snapshot),
        *('--name', copy, '--wait'),
    )
    (share,) = cli('share list', '--share-group', copy)
    cli('share delete', share['ID'], '--share-group', copy, '--wait')
    cli(f'{COMMAND} delete', copy, '--wait')
