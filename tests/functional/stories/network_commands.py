"""The commands for share networks, security services and share servers."""

import typing

from tests.support.processes import wait_until

NETWORK, SUBNET = 'share network', 'share network subnet'
SERVICE, SERVER = 'share security service', 'share server'
MIGRATION = f'{SERVER} migration'
TYPE = 'served'
"""A share type of `make run`."""


def networks(story: typing.Any) -> None:
    """Create networks, put shares on them and migrate a share server."""
    cli = story.cli
    cli(f'{NETWORK} create', '--name', 'red', '--description', 'one')
    cli(f'{NETWORK} unset', 'red', '--description')
    cli(f'{NETWORK} set', 'red', '--name', 'blue')
    assert _names(cli(f'{NETWORK} list')) == ['blue']
    assert cli(f'{NETWORK} show', 'blue')['name'] == 'blue'
    _security_services(story)
    _subnets(story)
    _servers(story)
    cli(f'{NETWORK} delete', 'blue')
    story.wait_idle()
    assert cli(f'{SERVER} list') == []
    assert cli(f'{NETWORK} list') == []


def _security_services(story: typing.Any) -> None:
    cli = story.cli
    cli(f'{SERVICE} create', 'ldap', '--name', 'people', '--domain', 'a')
    cli(f'{SERVICE} set', 'people', '--description', 'all')
    cli(f'{SERVICE} unset', 'people', '--domain')
    shown = cli(f'{SERVICE} show', 'people')
    assert (shown['description'], bool(shown['domain'])) == ('all', False)
    assert _names(cli(f'{SERVICE} list')) == ['people']
    cli(f'{SERVICE} delete', 'people')


def _subnets(story: typing.Any) -> None:
    cli = story.cli
    subnet = cli(f'{SUBNET} create', 'blue', '--property', 'a=b')['id']
    cli(f'{SUBNET} set', 'blue', subnet, '--property', 'c=d')
    cli(f'{SUBNET} unset', 'blue', subnet, '--property', 'a')
    assert cli(f'{SUBNET} show', 'blue', subnet)['id'] == subnet
    cli(f'{SUBNET} delete', 'blue', subnet)


def _servers(story: typing.Any) -> None:
    cli = story.cli
    cli(
        *('share create', 'NFS', '1', '--name', 'on-server', '--wait'),
        *('--share-type', TYPE, '--share-network', 'blue'),
    )
    (server,) = (one['ID'] for one in cli(f'{SERVER} list'))
    cli(f'{SERVER} set', server, '--status', 'error')
    cli(f'{SERVER} set', server, '--status', 'active')
    server = _migrate(story, server)
    cli('share delete', 'on-server', '--wait')
    shown = cli(f'{SERVER} show', server)
    cli(f'{SERVER} abandon', server, '--wait')
    adopted = cli(
        f'{SERVER} adopt', shown['host'], 'blue', shown['identifier'], '--wait'
    )
    cli(f'{SERVER} delete', adopted['id'], '--wait')


def _migrate(story: typing.Any, server: str) -> str:
    """Begin and cancel a migration, then complete one; return the server."""
    cli = story.cli
    here = cli(f'{SERVER} show', server)['host']
    there = here.replace('served', 'reserve')
    if there == here:
        there = here.replace('reserve', 'served')
    for end, state in (('cancel', 'cancelled'), ('complete', 'success')):
        cli(
            *(f'{MIGRATION} start', server, there, '--writable', 'False'),
            *('--nondisruptive', 'False', '--preserve-snapshots', 'False'),
        )
        _wait_for_state(cli, server, 'migration_driver_phase1_done')
        cli(f'{MIGRATION} {end}', server)
        found = _wait_for_state(cli, server, f'migration_{state}')
        story.wait_idle()
    return found['destination_share_server_id']


def _wait_for_state(cli: typing.Any, server: str, state: str) -> dict:
    def found() -> dict | None:
        shown = cli(f'{MIGRATION} show', server)
        return shown if shown['task_state'] == state else None

    return wait_until(found, f'{server} is in {state}')


def _names(shown: typing.Any) -> list[str]:
    return [one['Name'] for one in shown]
