"""The commands for share backups, as a part of a story."""

import typing

COMMAND = 'share backup'


def backups(story: typing.Any) -> None:
    """Create a backup, change, list, restore and delete it."""
    cli, name = story.cli, f'backup-{story.version}'
    share = f'of-{name}'
    cli(
        'share create',
        *('NFS', '1', '--name', share, '--share-type', story.type, '--wait'),
    )
    created = cli(f'{COMMAND} create', share, '--name', name, '--description', 'first')
    assert created['name'] == name
    story.wait_idle()
    shown = cli(f'{COMMAND} show', name)
    assert (shown['status'], shown['progress']) == ('available', '100')
    cli(f'{COMMAND} set', name, '--description', 'second')
    assert cli(f'{COMMAND} show', name)['description'] == 'second'
    cli(f'{COMMAND} unset', name, '--description')
    assert not cli(f'{COMMAND} show', name)['description']
    for options in (
        (),
        ('--name', name),
        ('--name~', 'backup'),
        ('--status', 'available'),
        ('--share', share),
        ('--limit', '1'),
        ('--sort-key', 'name', '--sort-dir', 'asc'),
        ('--detail',),
    ):
        listed = cli(f'{COMMAND} list', *options)
        assert [one['Name'] for one in listed] == [name], options
    assert cli(f'{COMMAND} list', '--name', 'other') == []
    cli('share delete', share, code=1)
    cli(f'{COMMAND} restore', name, '--wait')
    assert cli('share show', share)['status'] == 'available'
    if story.has('2.91'):
        _restore_to_another(story, name)
    if story.has('2.85'):
        _by_driver(story)
    cli(f'{COMMAND} set', name, '--status', 'error')
    assert cli(f'{COMMAND} show', name)['status'] == 'error'
    cli(f'{COMMAND} delete', name, '--wait')
    assert cli(f'{COMMAND} list') == []
    cli('share delete', share, '--wait')


def _restore_to_another(story: typing.Any, backup: str) -> None:
    cli, share = story.cli, f'copy-{backup}'
    cli(
        'share create',
        *('NFS', '1', '--name', share, '--share-type', story.type, '--wait'),
    )
    cli(f'{COMMAND} restore', backup, '--target-share', share, '--wait')
    assert (
        cli('share show', share)['source_backup_id']
        == cli(f'{COMMAND} show', backup)['id']
    )
    cli('share delete', share, '--wait')


def _by_driver(story: typing.Any) -> None:
    """Create, restore and delete a backup that the driver keeps."""
    cli, name = story.cli, f'vault-{story.version}'
    share = f'of-{name}'
    cli(
        'share create',
        *('NFS', '1', '--name', share, '--share-type', story.type, '--wait'),
    )
    options = ('--backup-options', 'backup_type=vault')
    cli(f'{COMMAND} create', share, '--name', name, *options)
    story.wait_idle()
    shown = cli(f'{COMMAND} show', name)
    assert (shown['status'], shown['progress']) == ('available', '100')
    assert (shown['backup_type'], shown['topic']) == ('vault', 'manila-share')
    cli(f'{COMMAND} restore', name, '--wait')
    cli(f'{COMMAND} create', share, '--name', 'other', code=1)
    cli(f'{COMMAND} delete', name, '--wait')
    cli('share delete', share, '--wait')
