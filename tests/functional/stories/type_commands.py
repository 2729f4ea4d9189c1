"""The commands for share types, share group types and QoS types."""

import typing


def share_types(story: typing.Any) -> None:
    """Create, change, list, grant and delete share types."""
    cli = story.cli
    created = cli(
        'share type create',
        story.type,
        'false',
        '--snapshot-support',
        'true',
        '--extra-specs',
        'my:a=b',
        'share_backend_name=dummy',
        *(('--description', 'gold') if story.has('2.41') else ()),
    )
    assert created['optional_extra_specs'] == {
        'my:a': 'b',
        'share_backend_name': 'dummy',
        'snapshot_support': 'True',
    }
    cli('share type set', story.type, '--extra-specs', 'my:c=d')
    cli('share type unset', story.type, 'my:a')
    assert cli('share type show', story.type)['optional_extra_specs'] == {
        'my:c': 'd',
        'share_backend_name': 'dummy',
        'snapshot_support': 'True',
    }
    assert story.type in _names(cli('share type list', '--all'))
    hidden = f'hidden-{story.version}'
    cli('share type create', hidden, 'false', '--public', 'false')
    cli('share type access create', hidden, story.project_id)
    assert cli('share type access list', hidden) == [{'Project ID': story.project_id}]
    cli('share type access delete', hidden, story.project_id)
    assert cli('share type access list', hidden) == []
    cli('share type delete', hidden)
    assert hidden not in _names(cli('share type list', '--all'))


def group_types(story: typing.Any) -> None:
    """Create, change, list, grant and delete share group types."""
    cli, name = story.cli, f'group-{story.version}'
    created = cli(
        'share group type create',
        name,
        story.type,
        '--group-specs',
        'my:a=b',
        '--public',
        'false',
    )
    member = cli('share type show', story.type)['id']
    assert created['share_types'] == [member]
    assert created['group_specs'] == {'my:a': 'b'}
    cli('share group type set', name, '--group-specs', 'my:c=d')
    cli('share group type unset', name, 'my:a')
    shown = cli('share group type show', name)
    assert shown['group_specs'] == {'my:c': 'd'}
    assert name in _names(cli('share group type list', '--all'))
    cli('share group type access create', name, story.project_id)
    assert cli('share group type access list', name) == [
        {'Project ID': story.project_id}
    ]
    cli('share group type access delete', name, story.project_id)
    cli('share group type delete', name)
    assert name not in _names(cli('share group type list', '--all'))


def qos_types(story: typing.Any) -> None:
    """Create, change, list and delete QoS types."""
    cli, name = story.cli, f'qos-{story.version}'
    created = cli(
        'share qos type create',
        name,
        '--description',
        'fast',
        '--spec',
        'peak_iops=300',
        '--spec',
        'policy=fixed',
    )
    assert created['specs'] == {'peak_iops': '300', 'policy': 'fixed'}
    cli(
        'share qos type set', name, '--description', 'faster', '--spec', 'peak_iops=500'
    )
    cli('share qos type unset', name, '--spec', 'policy')
    shown = cli('share qos type show', created['id'])
    assert shown['description'] == 'faster'
    assert shown['specs'] == {'peak_iops': '500'}
    cli('share qos type unset', name, '--description')
    assert cli('share qos type show', name)['description'] is None
    for options in (('--name~', 'qos'), ('--sort-key', 'name')):
        assert _names(cli('share qos type list', *options)) == [name]
    assert cli('share qos type list', '--name', 'other') == []
    cli('share qos type delete', name)
    assert cli('share qos type list') == []


def _names(shown: typing.Any) -> list[str]:
    return [one['Name'] for one in shown]
