"""A project with a resource of each kind that the pages show."""

from collections.abc import Iterator, Mapping
import functools
import typing

import sqlalchemy as sa

from manila_lite.api.ui import site
from manila_lite.db import models
from tests.functional.ui.conftest import UiCloud
from tests.support import share_groups, share_servers
from tests.support.cloud import Cloud
from tests.support.replicated import ReplicatedCloud

MARK = 'reds-own'
"""Part of the name of everything that belongs to the project `red`."""


class EstateCloud(UiCloud, ReplicatedCloud):
    """A cloud with the page, whose shares are replicated."""


class Estate(typing.NamedTuple):
    """The ids by the variables of paths, and what forms may send."""

    ids: Mapping[str, str]
    fields: Mapping[str, str]
    secrets: frozenset[str]
    """Names and ids that only the project may see."""

    def paths(self, method: str) -> Iterator[str]:
        """Return the path of each page that has this method."""
        for template, handlers in site.PAGES.items():
            if method in handlers:
                yield template.format_map(self.ids)


def build(cloud: Cloud, api: typing.Any, admin_api: typing.Any) -> Estate:
    """Let alice create a resource of each kind; nothing is in flight then."""
    return cloud.prepare(functools.partial(_build, cloud, api, admin_api), 'estate')


def _build(cloud: Cloud, api: typing.Any, admin_api: typing.Any) -> Estate:
    share = api.create(name=f'{MARK} share', description=MARK)['id']
    cloud.settle()
    api.act(
        share,
        'allow_access',
        {'access_type': 'ip', 'access_to': '10.66.0.1', 'access_level': 'rw'},
        expect=200,
    )
    posted = {'share_id': share, 'name': f'{MARK} snapshot'}
    snapshot = api.request('POST', '/snapshots', {'snapshot': posted}, expect=202).json[
        'snapshot'
    ]['id']
    cloud.settle()
    replica = api.request(
        'POST', '/share-replicas', {'share_replica': {'share_id': share}}, expect=202
    ).json['share_replica']['id']
    network, (subnet,) = share_servers.create_network_with_subnets(
        api, name=f'{MARK} network', description=MARK
    )
    posted = {'type': 'ldap', 'name': f'{MARK} service', 'domain': MARK}
    service = api.request(
        'POST', '/security-services', {'security_service': posted}, expect=200
    ).json['security_service']['id']
    posted = {'security_service_id': service}
    api.request(
        'POST',
        f'/share-networks/{network}/action',
        {'add_security_service': posted},
        expect=200,
    )
    server = share_servers.insert_server(cloud, network, identifier=f'{MARK} server')
    group_type = share_groups.create_type(admin_api, share_types=[_type(api)])
    posted = {'name': f'{MARK} group', 'description': MARK}
    group = share_groups.request(
        api, group_type, share_types=[_type(api)], **posted
    ).json['share_group']['id']
    cloud.settle()
    group_snapshot = share_groups.request_snapshot(
        api, group, name=f'{MARK} group snapshot'
    ).json['share_group_snapshot']['id']
    cloud.settle()
    for driver in map(cloud.driver, cloud.backend_names):
        driver.faults.fail_next('create_share', error=ValueError(MARK))
    api.create(name=f'{MARK} failure')  # which writes a message
    cloud.settle()
    (rule,) = api.get(f'/share-access-rules?share_id={share}')['access_list']
    return Estate(
        {
            'share_id': share,
            'network_id': network,
            'server_id': server,
            'group_id': group,
            'security_service_id': service,
        },
        {
            'snapshot_id': snapshot,
            'replica_id': replica,
            'subnet_id': subnet,
            'group_snapshot_id': group_snapshot,
            'current_service_id': service,
            'new_service_id': service,
            'host': 'node@beta#pool',
            'task_state': 'migration_error',
            'access_id': rule['id'],
            'resource_type': 'share_instance',
            'resource_id': replica,
            'confirm': f'{MARK} share',
            'new_size': '9',
            'status': 'error',
            'access_type': 'ip',
            'access_to': '10.66.0.2',
            'access_level': 'rw',
        },
        frozenset([MARK, '10.66.0.1', *_ids(cloud)]),
    )


def _type(api: typing.Any) -> str:
    return api.get('/types')['share_types'][0]['id']


def _ids(cloud: Cloud) -> Iterator[str]:
    """Return the ids of all rows of resources but share types."""
    for name, rows in dump(cloud).items():
        if name.startswith(('share', 'snapshot')) and 'type' not in name:
            for row in rows:
                if 'id' in row and row['id'] is not None:
                    yield str(row['id'])


def dump(cloud: Cloud) -> dict[str, list[Mapping[str, typing.Any]]]:
    """Return all rows of the database."""

    def read(session: typing.Any) -> dict:
        return {
            name: [row._asdict() for row in session.rows(sa.select(table))]
            for name, table in models.metadata.tables.items()
        }

    return cloud.db.read(read)


def changed(before: dict, after: dict) -> list[str]:
    """Return the names of the tables that differ."""
    return [
        name
        for name in before
        if sorted(map(str, before[name])) != sorted(map(str, after[name]))
    ]
