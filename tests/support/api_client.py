"""A client of the application of a simulated cloud, for one user."""

import json
import typing

import webob

LATEST = '2.99'


class ApiClient:
    """Sends requests to the application as one user."""

    def __init__(
        self,
        cloud: typing.Any,
        project: str = 'project',
        user: str = 'user',
        roles: str = 'admin,member,reader',
        version: str = LATEST,
    ):
        self.cloud = cloud
        self.headers = {
            'X-Project': project,
            'X-User': user,
            'X-Roles': roles,
            'X-OpenStack-Manila-API-Version': version,
        }

    def __repr__(self) -> str:
        return f'ApiClient({self.headers})'

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str | None = None,
        expect: int | None = None,
        **headers: str,
    ) -> typing.Any:
        """Return the webob response; `expect` asserts its status code."""
        request = webob.Request.blank(
            '/v2' + path,
            method=method,
            headers=self.headers
            | {name.replace('_', '-'): value for name, value in headers.items()},
        )
        if version:
            request.headers['X-OpenStack-Manila-API-Version'] = version
        if body is not None:
            request.body = json.dumps(body).encode()
            request.content_type = 'application/json'
        response = request.get_response(self.cloud.app)
        if expect is not None:
            assert response.status_int == expect, (
                method,
                path,
                response.status,
                response.text,
            )
        return response

    def get(self, path: str, expect: int = 200, **kwargs) -> typing.Any:
        return self.request('GET', path, expect=expect, **kwargs).json

    def create(
        self, expect: int | None = 200, version: str | None = None, **body: object
    ) -> typing.Any:
        body = {'share_proto': 'NFS', 'size': 1} | body
        response = self.request(
            'POST', '/shares', {'share': body}, expect=expect, version=version
        )
        return response.json.get('share', response.json)

    def act(
        self,
        share_id: str,
        action: str,
        args: object = None,
        expect: int | None = 202,
        version: str | None = None,
    ) -> typing.Any:
        return self.request(
            'POST',
            f'/shares/{share_id}/action',
            {action: args},
            expect=expect,
            version=version,
        )

    def ensure(self, host: str, expect: int | None = 202) -> typing.Any:
        return self.request(
            'POST',
            '/services/ensure-shares',
            {'ensure_shares': {'host': host}},
            expect=expect,
        )

    def delete(self, share_id: str, expect: int | None = 202) -> typing.Any:
        return self.request('DELETE', f'/shares/{share_id}', expect=expect)

    def show(self, share_id: str, version: str | None = None) -> dict:
        return self.get(f'/shares/{share_id}', version=version)['share']
