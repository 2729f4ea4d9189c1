"""The commands for replicas and for migrations of shares."""

import typing

from tests.support.processes import wait_until

REPLICA, MIGRATION = 'share replica', 'share migration'
TYPE = 'replicated'
"""A share type of `make run`."""


def replicas(story: typing.Any) -> None:
    """Replicate a share to another back end, and fail over to it."""
    cli, share = story.cli, 'replicated'
    cli(
        *('share create', 'NFS', '1', '--name', share, '--wait'),
        *('--share-type', TYPE),
    )
    (first,) = (one['ID'] for one in cli(f'{REPLICA} list', '--share', share))
    created = cli(f'{REPLICA} create', share, '--property', 'a=b', '--wait')
    second = created['id']
    _wait_for_state(cli, second, 'in_sync')
    locations = cli(f'{REPLICA} export location list', second)
    cli(f'{REPLICA} export location show', second, locations[0]['ID'])
    cli(f'{REPLICA} unset', second, '--property', 'a')
    cli(f'{REPLICA} set', second, '--replica-state', 'out_of_sync')
    cli(f'{REPLICA} resync', second)
    _wait_for_state(cli, second, 'in_sync')
    cli(f'{REPLICA} promote', second, '--wait')
    _wait_for_state(cli, second, 'active')
    _wait_for_state(cli, first, 'in_sync')
    cli(f'{REPLICA} delete', first, '--wait')
    cli('share delete', share, '--wait')


def _wait_for_state(cli: typing.Any, replica: str, state: str) -> None:
    def found() -> bool:
        return cli(f'{REPLICA} show', replica)['replica_state'] == state

    wait_until(found, state)


def migrations(story: typing.Any) -> None:
    """Begin and cancel a migration, then complete one."""
    cli, share = story.cli, 'moving'
    here, there = (f'{story.host}#pool', f'{story.other_host}#pool')
    cli('share type create', share, 'false')
    cli(
        *('share create', 'NFS', '1', '--name', share, '--wait'),
        *('--share-type', share, '--scheduler-hint', f'only_host={here}'),
    )
    for end, state in (('cancel', 'cancelled'), ('complete', 'success')):
        cli(
            *(f'{MIGRATION} start', share, there, '--writable', 'False'),
            *('--nondisruptive', 'False', '--preserve-metadata', 'False'),
            *('--preserve-snapshots', 'False'),
        )
        _wait_for_task(cli, share, 'migration_driver_phase1_done')
        cli(f'{MIGRATION} {end}', share)
        _wait_for_task(cli, share, f'migration_{state}')
        story.wait_idle()
    assert cli('share show', share)['host'] == there
    cli('share delete', share, '--wait')
    cli('share type delete', share)


def _wait_for_task(cli: typing.Any, share: str, state: str) -> None:
    def found() -> bool:
        return cli(f'{MIGRATION} show', share)['task_state'] == state

    wait_until(found, state)
