"""Requests to the sample cloud, as one of its personas."""

import json
import typing

import webob

from manila_lite.api import versions
from tests.functional.api import described, published_api
from tests.support.api_client import ApiClient
from tests.support.cloud import Cloud

ADMINS, TENANT, FOREIGN = 'ad' * 16, '7e' * 16, 'f0' * 16

PERSONAS = {
    'admin': (ADMINS, 'admin,member,reader'),
    'member': (TENANT, 'member,reader'),
    'reader': (TENANT, 'reader'),
    'guest': (TENANT, 'guest'),
    'foreign': (FOREIGN, 'member,reader'),
}
"""Project and roles; all but admin and foreign are in the share's project."""


class RequestArgs(typing.NamedTuple):
    """Path variables, body and query of a request for an operation.

    For an action, `body` is the value below the name of the action.
    """

    variables: dict[str, str]
    body: object = None
    query: str = ''


def request_args(body: object = None, query: str = '', **variables: str) -> RequestArgs:
    return RequestArgs(variables, body, query)


class SampleRequests:
    """Sends requests for published operations.

    Every answer must be as the API description of its version says.
    """

    cloud: Cloud
    apis: dict[str, ApiClient]

    def send_request(
        self,
        operation: published_api.Operation,
        args: RequestArgs,
        **options: typing.Any,
    ) -> typing.Any:
        """Send a request for the operation; return the response.

        `options` are those of `send`.
        """
        body = args.body
        if operation.action:
            body = {operation.action: body}
        if options.get('minor', 99) in operation.experimental_versions:
            options['headers'] = {
                versions.EXPERIMENTAL_HEADER: 'true',
                **options.get('headers', {}),
            }
        return self.send(
            operation.method,
            operation.path.format(**args.variables) + args.query,
            body,
            **options,
        )

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        persona: str = 'admin',
        minor: int = 99,
        project: bool = False,
        raw: bytes | None = None,
        headers: dict | None = None,
        app: typing.Callable | None = None,
    ) -> typing.Any:
        """Send a request; return the response.

        `project` puts the caller's project into the URL, `raw` is a body
        that is sent as it is, `app` replaces the application.
        """
        if project:
            path = path.replace('/v2', f'/v2/{PERSONAS[persona][0]}', 1)
        request = webob.Request.blank(
            path,
            method=method,
            headers={
                **self.apis[persona].headers,
                versions.HEADER: published_api.version_text(minor),
            },
        )
        if body is not None or raw is not None:
            request.body = json.dumps(body).encode() if raw is None else raw
            request.content_type = 'application/json'
        request.headers.update(headers or {})
        answer = request.get_response(app or self.cloud.app)
        if app is None:
            described.check_answer(request, answer)
        return answer
