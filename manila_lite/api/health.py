"""The health of this process, for load balancers and operators."""

import typing

import orjson

from manila_lite.api import wsgi

# A check returns None if healthy, else a short reason. It is public, so it
# must not contain addresses or secrets.
Check = typing.Callable[[], str | None]


class NotKnown(str):
    """What a check says that has not ended yet: neither good nor bad."""

    __slots__ = ()


class HealthCheck:
    """The WSGI application at /healthcheck; needs no authentication.

    The process is healthy if all `required` checks succeed; without names,
    all checks are required. Reasons of the others are shown only, as is what
    is not known yet.
    """

    def __init__(
        self,
        checks: typing.Mapping[str, Check],
        required: typing.Collection[str] | None = None,
    ):
        self._checks = dict(checks)
        self._required = set(checks if required is None else required)

    def __call__(
        self, environ: dict, start_response: typing.Callable
    ) -> typing.Iterable[bytes]:
        reasons = {name: check() for name, check in self._checks.items()}
        failing = [f'{name}: {reason}' for name, reason in reasons.items() if reason]
        healthy = not any(
            reason and name in self._required and not isinstance(reason, NotKnown)
            for name, reason in reasons.items()
        )
        status = 200 if healthy else 503
        if 'application/json' in environ.get('HTTP_ACCEPT', ''):
            return wsgi.send(
                start_response,
                status,
                orjson.dumps(
                    {
                        'healthy': healthy,
                        'reasons': failing or ['OK'],
                        'checks': {
                            name: reason or 'OK' for name, reason in reasons.items()
                        },
                    }
                ),
            )
        return wsgi.send(
            start_response,
            status,
            '\n'.join([*(['OK'] if healthy else []), *failing]).encode(),
            kind='text/plain; charset=UTF-8',
        )
