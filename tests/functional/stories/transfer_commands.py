"""The commands for share transfers, as a part of a story."""

import typing

COMMAND = 'share transfer'


def transfers(story: typing.Any) -> None:
    """Offer the share, list, show, withdraw and accept the offer."""
    cli, share = story.cli, story.name
    created = cli(f'{COMMAND} create', share, '--name', 'gift')
    assert len(created['auth_key']) == 16
    assert story.shown()['Status'] == 'awaiting_transfer'
    _check_lists(story, created)
    shown = cli(f'{COMMAND} show', 'gift')
    assert 'auth_key' not in shown
    assert shown['source_project_id'] == story.project_id
    cli(f'{COMMAND} accept', created['id'], 'another key', code=1)
    cli(f'{COMMAND} delete', 'gift')
    assert story.shown()['Status'] == 'available'
    for options in ((), ('--clear-rules',)):
        created = cli(f'{COMMAND} create', share)
        cli(f'{COMMAND} accept', created['id'], created['auth_key'], *options)
        # Without waiting: the share has been transferred.
        assert story.cli('share show', share)['status'] == 'available'
    assert cli(f'{COMMAND} list') == []


def _check_lists(story: typing.Any, created: dict) -> None:
    listed = [
        {
            'ID': created['id'],
            'Name': 'gift',
            'Resource Type': 'share',
            'Resource Id': created['resource_id'],
        }
    ]
    for options in (
        (),
        ('--all-projects',),
        ('--name', 'gift'),
        ('--id', created['id']),
        ('--resource-type', 'share'),
        ('--resource-id', created['resource_id']),
        ('--source-project-id', story.project_id),
        ('--limit', '1', '--offset', '0'),
        ('--sort-key', 'name', '--sort-dir', 'asc'),
    ):
        assert story.cli(f'{COMMAND} list', *options) == listed, options
    assert story.cli(f'{COMMAND} list', '--name', 'other') == []
    (detailed,) = story.cli(f'{COMMAND} list', '--detailed')
    assert detailed['Accepted'] is False
    assert detailed['Expires At'] == created['expires_at']
