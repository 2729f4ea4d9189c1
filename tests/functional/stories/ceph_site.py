"""A service with shares on a Ceph cluster, and the official client."""

import typing

from tests.support.ceph import CephCluster
from tests.support.cli import Cli
from tests.support.installation import Installation
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient


class Deployment(typing.NamedTuple):
    installation: Installation
    cli: Cli
    rest: RestClient
    cluster: CephCluster

    def wait(self, noun: str, id: str) -> dict:
        def found():
            resource = self.rest.get(f'/{noun}s/{id}')[noun]
            assert 'error' not in resource['status']
            return resource['status'] == 'available' and resource

        return wait_until(found, f'{noun} {id} is available', 120)

    def create(self, *args: object, share_proto: str = 'CEPHFS') -> str:
        """Ask for a share; return its id."""
        return self.cli('share create', share_proto, 1, *args)['id']

    def location(self, share: str) -> str:
        locations = self.rest.get(f'/shares/{share}/export_locations')
        return locations['export_locations'][0]['path']

    def allow(
        self, share: str, user: str, level: str = 'rw', kind: str = 'cephx'
    ) -> dict:
        """Allow a user; return the rule with its key."""
        rule = self.cli(
            'share access create', share, kind, user, '--access-level', level
        )
        return wait_until(lambda: self._rule(share, rule['id']), 'the rule applies')

    def _rule(self, share: str, id: str) -> dict | None:
        rules = self.rest.get(f'/share-access-rules?share_id={share}')['access_list']
        (rule,) = (one for one in rules if one['id'] == id)
        assert rule['state'] != 'error'
        return rule if rule['state'] == 'active' else None

    def deny(self, share: str, rule: str) -> None:
        self.cli('share access delete', share, rule)
        path = f'/share-access-rules?share_id={share}'
        wait_until(
            lambda: all(
                one['id'] != rule for one in self.rest.get(path)['access_list']
            ),
            'the rule is gone',
        )

    def mounted(self, share: str, rule: dict):
        return self.cluster.mounted(
            self.location(share), rule['access_to'], rule['access_key']
        )
