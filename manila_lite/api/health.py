"""The health of this process, for load balancers and operators."""

import typing

import orjson

from manila_lite.api import wsgi

# A check returns None if healthy, else a short reason. It is public, so it
# must not contain addresses or secrets.
Check = typing.Callable[[], str | None]


class HealthCheck:
    """The WSGI application at /healthcheck; needs no authentication."""

    def __init__(self, checks: typing.Mapping[str, Check]):
        self._checks = dict(checks)

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        reasons = {name: check() for name, check in self._checks.items()}
        failing = [
            f'{name}: {reason}' for name, reason in reasons.items() if reason
        ]
        status = 503 if failing else 200
        if 'application/json' in environ.get('HTTP_ACCEPT', ''):
            return wsgi.send(
                start_response,
                status,
                orjson.dumps(
                    {
                        'healthy': not failing,
                        'reasons': failing or ['OK'],
                        'checks': {
                            name: reason or 'OK'
                            for name, reason in reasons.items()
                        },
                    }
                ),
            )
        return wsgi.send(
            start_response,
            status,
            '\n'.join(failing or ['OK']).encode(),
            kind='text/plain; charset=UTF-8',
        )
