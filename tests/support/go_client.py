"""The requests of gophercloud, which the Go clients of the share API use.

Signing in and the life of a share were recorded from a Go program with the
library; updates, metadata and shrinking follow its documents.
"""

from collections.abc import Mapping
import dataclasses
import typing

import requests

HEADERS = {'User-Agent': 'gophercloud/2.0.0', 'Accept': 'application/json'}


@dataclasses.dataclass(frozen=True)
class Options:
    """What an operator configures, for example by variables OS_*."""

    auth_url: str
    username: str
    password: str
    project: str
    domain: str = 'Default'
    region: str = 'RegionOne'


class GoClient:
    """Signs in, finds the share service and sends requests to it.

    `service_type` is `sharev2` in older releases of the library and
    `shared-file-system` in newer ones.
    """

    def __init__(
        self, options: Options, service_type: str = 'sharev2', version: str = '2.37'
    ):
        self._options = options
        self._type, self._version = service_type, version
        self._session = requests.Session()
        self._session.headers.update(HEADERS)
        self.sign_ins = 0
        self.sign_in()

    def sign_in(self) -> None:
        given = self._options
        domain = {'name': given.domain}
        answer = self._session.post(
            f'{self._identity_url()}auth/tokens',
            json={
                'auth': {
                    'identity': {
                        'methods': ['password'],
                        'password': {
                            'user': {
                                'domain': domain,
                                'name': given.username,
                                'password': given.password,
                            }
                        },
                    },
                    'scope': {'project': {'domain': domain, 'name': given.project}},
                }
            },
            headers={'Content-Type': 'application/json'},
            timeout=60,
        )
        assert answer.status_code == 201, answer.text
        self.token = answer.headers['X-Subject-Token']
        self.endpoint = self._endpoint(answer.json()['token']['catalog'])
        self.sign_ins += 1

    def _identity_url(self) -> str:
        """Return the URL of v3; it is asked for unless it was configured."""
        url = self._options.auth_url.rstrip('/') + '/'
        if url.endswith('/v3/'):
            return url
        answer = self._session.get(url, timeout=60)
        assert answer.status_code in (200, 300), answer.text
        for value in answer.json()['versions']['values']:
            if 'v3' in value['id'] and value['status'] == 'stable':
                (href,) = (
                    link['href'] for link in value['links'] if link['rel'] == 'self'
                )
                return href.rstrip('/') + '/'
        raise AssertionError('No supported version available')

    def _endpoint(self, catalog: list[dict[str, typing.Any]]) -> str:
        """Return the public endpoint in the region; there must be one."""
        (url,) = (
            endpoint['url']
            for service in catalog
            if service['type'] == self._type
            for endpoint in service['endpoints']
            if endpoint['interface'] == 'public'
            and self._options.region in (endpoint['region'], '')
        )
        return url.rstrip('/') + '/'

    def __call__(
        self,
        method: str,
        path: str,
        body: Mapping[str, typing.Any] | None = None,
        *,
        expect: tuple[int, ...] = (200,),
    ) -> typing.Any:
        """Send a request; sign in again if the token is refused."""
        answer = self._send(method, path, body)
        if answer.status_code == 401:
            self.sign_in()
            answer = self._send(method, path, body)
        assert answer.status_code in expect, (method, path, answer.text)
        return answer.json() if answer.content else None

    def _send(
        self, method: str, path: str, body: Mapping[str, typing.Any] | None
    ) -> requests.Response:
        headers = {
            'X-Auth-Token': self.token,
            'X-OpenStack-Manila-API-Version': self._version,
            'OpenStack-API-Version': f'{self._type} {self._version}',
        }
        return self._session.request(
            method, self.endpoint + path, json=body, headers=headers, timeout=60
        )
