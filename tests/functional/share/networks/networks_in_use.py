"""A cloud with a share network in use by a share server."""

import pathlib
import typing

from tests.support.api_client import ApiClient
from tests.support.dhss import ShareServersCloud

NEUTRON = {'neutron_net_id': 'net', 'neutron_subnet_id': 'subnet'}


class NetworkCloud(ShareServersCloud):
    """A cloud with a network in use: `network`, `used_by`, `server`.

    A security service of type ldap is attached: `service`.
    """

    def __init__(self, folder: pathlib.Path, **kwargs: typing.Any):
        super().__init__(folder, **kwargs)
        self.network = self.add_network()
        self.service = self.new_service()
        self.act('add_security_service', security_service_id=self.service)
        self.used_by = self.create_share_on_network(self.network)
        self.server = self.server_of(self.used_by)

    def new_service(self, type: str = 'ldap', **body: object) -> str:
        return self.api.request(
            'POST',
            '/security-services',
            {'security_service': {'type': type, **body}},
            expect=200,
        ).json['security_service']['id']

    def act(
        self,
        action: str,
        expect: int | None = None,
        api: ApiClient | None = None,
        version: str | None = None,
        **args: object,
    ) -> typing.Any:
        """Send an action on the network; return the response body."""
        answer = (api or self.api).request(
            'POST',
            f'/share-networks/{self.network}/action',
            {action: args},
            version=version,
        )
        if expect is None:
            assert answer.status_int < 300, answer.text
        else:
            assert answer.status_int == expect, answer.text
        return answer.json if answer.body else None

    def check(self, action: str, **args: object) -> typing.Any:
        """Run a check of a change to its end; return the result."""
        assert self.act(action, **args)['compatible'] is None
        while self.step():
            pass
        return self.act(action, **args)

    def status(self) -> str:
        return self.api.get(f'/share-networks/{self.network}')['share_network'][
            'status'
        ]

    def server_status(self) -> str:
        (row,) = [row for row in self.servers() if row.id == self.server]
        return row.status

    def attached(self) -> set[str]:
        """Return the ids of security services attached to the network."""
        found = self.api.get(f'/security-services?share_network_id={self.network}')
        return {one['id'] for one in found['security_services']}

    def remembered(self) -> dict:
        """Return the state that the back end has of the server."""
        for name in self.backend_names:
            found = self.driver(name).backend.state.servers.find(self.server)
            if found is not None:
                return found
        raise LookupError(self.server)

    def fail_next(self, method: str, error: Exception | None = None) -> None:
        for name in self.backend_names:
            self.driver(name).faults.fail_next(method, error=error)

    def add_subnet_like(self, expect: int = 200, **body: object) -> typing.Any:
        return self.api.request(
            'POST',
            f'/share-networks/{self.network}/subnets',
            {'share-network-subnet': body},
            expect=expect,
        ).json
