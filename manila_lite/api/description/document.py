"""The whole description of one version."""

import collections
import functools
import typing

import orjson
from oslo_config import cfg

from manila_lite.api import routes, versions
from manila_lite.api.description import operations, parameters, responses
from manila_lite.api.description.shapes import Shapes

_TEXT = """\
Wire compatible with the Manila v2 API of OpenStack. Every path below /v2 also
works with the id of the caller's project after /v2, and requests of that form
may name no other project."""

_TOKEN = {'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'}
_BASIC = {'type': 'http', 'scheme': 'basic'}


def encoded(conf: cfg.ConfigOpts, minor: int) -> bytes:
    """Return the description of a version as JSON."""
    return _encoded(tuple(sign_in(conf)), minor)


# A client reads one version; a description takes about half a megabyte.
@functools.lru_cache(maxsize=4)
def _encoded(schemes: tuple[str, ...], minor: int) -> bytes:
    return orjson.dumps(describe(schemes, minor))


def sign_in(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the security schemes that are configured."""
    if conf.auth_strategy.startswith('noauth'):
        return []  # callers without credentials are administrators
    if conf.auth_strategy != 'http_basic':
        return ['token']
    return ['basic', 'token'] if conf.http_basic.identity_api else ['basic']


def describe(schemes: typing.Iterable[str], minor: int) -> dict[str, typing.Any]:
    """Return the description of a version."""
    shapes = Shapes(minor)
    names: set[str] = set()
    paths: dict[str, dict] = collections.defaultdict(dict)
    for route in routes.ROUTES:
        if operations.serves(route, minor):
            paths[route.template][route.method.lower()] = operations.describe(
                route, minor, shapes, names
            )
    known = {'token': _TOKEN, 'basic': _BASIC}
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Shared file systems',
            'version': versions.text(minor),
            'description': _TEXT,
        },
        'servers': [{'url': '/'}],
        'security': [{scheme: []} for scheme in schemes],
        'paths': paths,
        'components': {
            'securitySchemes': {scheme: known[scheme] for scheme in schemes},
            'parameters': {
                'version': parameters.version_header(minor),
                'experimental': parameters.EXPERIMENTAL,
            },
            'responses': responses.error_components(),
            'schemas': {**shapes.components, **responses.error_schemas()},
        },
    }
