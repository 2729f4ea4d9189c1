"""The API as one user sees it, over HTTP."""

from collections.abc import Mapping
import typing

import requests

from tests.support.processes import wait_until

LATEST = '2.99'
IN_FLIGHT = ('creating', 'extending', 'shrinking', 'deleting')


class RestClient:
    """Sends requests to an address as one user.

    `last` is the response to the last request, whatever its status code.
    """

    def __init__(
        self,
        url: str,
        *,
        version: str = LATEST,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ):
        self.url = url
        self._session = requests.Session()
        self._session.auth = auth
        self._session.headers.update(
            {'X-OpenStack-Manila-API-Version': version, **(headers or {})}
        )
        self.headers = dict(self._session.headers)
        self.last: requests.Response | None = None

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        expect: int = 200,
        timeout: float = 30.0,
        **headers: str,
    ) -> typing.Any:
        """Return the body, parsed if JSON; fail on an unexpected status."""
        self.last = self._session.request(
            method,
            self.url + path,
            json=body,
            timeout=timeout,
            headers={name.replace('_', '-'): value for name, value in headers.items()},
        )
        assert self.last.status_code == expect, (
            method,
            path,
            self.last.status_code,
            self.last.text,
        )
        kind = self.last.headers.get('Content-Type', '')
        if self.last.content and kind.startswith('application/json'):
            return self.last.json()
        return self.last.text

    def get(self, path: str, **kwargs: typing.Any) -> typing.Any:
        return self.request('GET', path, **kwargs)

    # Shares

    def create(self, expect: int = 200, **body: object) -> typing.Any:
        body = {'share_proto': 'NFS', 'size': 1} | body
        answer = self.request('POST', '/shares', {'share': body}, expect)
        return answer.get('share', answer)

    def act(
        self, share_id: str, action: str, args: object = None, expect: int = 202
    ) -> typing.Any:
        return self.request(
            'POST', f'/shares/{share_id}/action', {action: args}, expect
        )

    def make_default_type(self, **specs: str) -> None:
        """Create the share type `default`, without share servers."""
        self.create_type('default', **specs)

    def create_type(self, name: str, **specs: str) -> None:
        """Create a share type without share servers."""
        self.request(
            'POST',
            '/types',
            {
                'share_type': {
                    'name': name,
                    'extra_specs': {'driver_handles_share_servers': 'False'} | specs,
                }
            },
        )

    def delete(self, share_id: str, expect: int = 202) -> typing.Any:
        return self.request('DELETE', f'/shares/{share_id}', expect=expect)

    def show(self, share_id: str) -> dict[str, typing.Any]:
        return self.get(f'/shares/{share_id}')['share']

    def find(self, share_id: str) -> dict[str, typing.Any] | None:
        """Return the share, or None when there is no such share."""
        path = f'/shares/{share_id}'
        answer = self._session.get(self.url + path, timeout=30)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()['share']

    def wait_at_rest(
        self, share_id: str, timeout: float = 30.0
    ) -> dict[str, typing.Any]:
        """Wait until the share is in no transitional status; return it."""

        def check() -> dict[str, typing.Any] | None:
            share = self.show(share_id)
            return None if share['status'] in IN_FLIGHT else share

        return wait_until(check, f'share {share_id} is at rest', timeout)

    def create_available(self, **body: object) -> dict[str, typing.Any]:
        """Create a share, wait until it is available and return it."""
        share = self.wait_at_rest(self.create(**body)['id'])
        assert share['status'] == 'available', share
        return share

    def wait_gone(self, share_id: str, timeout: float = 30.0) -> None:
        wait_until(
            lambda: self.find(share_id) is None, f'share {share_id} is gone', timeout
        )
