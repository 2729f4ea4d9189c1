"""An empty id that need not be given is as if it were absent.

Dashboards send every field of a form, those that are not filled in empty.
"""

from collections.abc import Iterator
import inspect
import typing

import jsonschema
import pytest

from manila_lite.api import routes, schema, versions

NAMED = ('availability_zone', 'share_type', 'volume_type')
"""Fields with the id or the name of something.

An empty `encryption_key_ref` is refused: the share would not be encrypted.
"""


def bodies() -> Iterator[tuple[str, schema.Schema]]:
    """Yield the bodies of all operations."""
    for controller in {route.controller for route in routes.ROUTES}:
        for name, method in inspect.getmembers(controller, callable):
            for declared in (
                getattr(method, 'declared', None),
                *(row.declared for row in getattr(method, 'actions', ())),
            ):
                if declared and declared.body:
                    yield f'{controller.__name__}.{name}', declared.body


def optional_ids(described: dict[str, typing.Any]) -> Iterator[tuple[str, dict]]:
    """Yield the fields of a body that may name something by its id."""
    for part in described.get('anyOf', ()):
        yield from optional_ids(part)
    required = {
        name
        for rule in (described, *described.get('allOf', ()))
        for choice in (rule, *rule.get('anyOf', ()))
        for name in choice.get('required', ())
    }
    for name, field in described.get('properties', {}).items():
        if not isinstance(field, dict):
            continue
        if name not in required and (name.endswith('_id') or name in NAMED):
            yield name, field
        yield from optional_ids(field)


OWN = ('RecoveryController.run', 'resource_id')
"""Not published; without it, all resources are meant."""

FOUND = {
    (operation, name): field
    for operation, body in bodies()
    for name, field in optional_ids(body.json_schema(versions.MAX))
    if (operation, name) != OWN
}


def test_ids_are_found():
    assert len(FOUND) > 20


@pytest.mark.parametrize('operation, name', sorted(FOUND))
def test_empty_id_is_accepted(operation, name):
    jsonschema.validate('', FOUND[operation, name])
