"""Every view has the published fields with the published types."""

import re

import pytest

from tests.functional.api import differences, published_api
from tests.functional.api.views.registry import VIEWS
from tests.support import sampling

_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6}|Z)')
_POOL = re.compile('[^@#]+@[^@#]+#[^@#]+')


def _text(pattern):
    return lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value))


def _list(*keys):
    return lambda value: (
        isinstance(value, list) and all(set(keys) <= set(item) for item in value)
    )


def _object(*keys):
    return lambda value: isinstance(value, dict) and set(keys) <= set(value)


TYPE_CHECKS = {
    'array': _list(),
    'array (same items)': _list('id'),
    'array of link (only when page is full)': _list('rel', 'href'),
    'array of subnet without share_network_id and share_network_name': (
        lambda value: all(
            set(item) >= {'id', 'neutron_net_id'}
            and set(item).isdisjoint({'share_network_id', 'share_network_name'})
            for item in value
        )
    ),
    'array of uuid': lambda value: all(map(_text(_UUID), value)),
    'array of uuid (sorted)': lambda value: (
        value == sorted(value) and all(map(_text(_UUID), value))
    ),
    'object of string': lambda value: all(
        isinstance(text, str) for text in value.values()
    ),
    'array of string': lambda value: (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    ),
    'array of {id,size,share_id}': _list('id', 'size', 'share_id'),
    'array of {base,type}': _list('base', 'type'),
    'array of {rel,href}': _list('rel', 'href'),
    'boolean': lambda value: isinstance(value, bool),
    'boolean false': lambda value: value is False,
    'datetime': _text(_TIME),
    'integer': lambda value: type(value) is int,
    'integer GiB': lambda value: type(value) is int and value > 0,
    'null': lambda value: value is None,
    'object': _object(),
    'object (same)': _object('id'),
    'object host -> boolean': lambda value: all(
        isinstance(value_of_host, bool) for value_of_host in value.values()
    ),
    'object host -> null': lambda value: (
        value and all(value_of_host is None for value_of_host in value.values())
    ),
    'object operation,current_security_service,new_security_service': _object(
        'operation', 'current_security_service', 'new_security_service'
    ),
    'object backup_id,share_id': _object('backup_id', 'share_id'),
    'object limit,in_use,reserved': _object('limit', 'in_use', 'reserved'),
    'object string->string': lambda value: all(
        isinstance(text, str) for text in value.values()
    ),
    'string': _text('.*'),
    'string (name)': _text('[a-z]+'),
    'string host@backend#pool': _text(_POOL),
    'string upper case': _text('[A-Z]+'),
    'uuid': _text(_UUID),
}
"""A predicate for the values of each published type."""


def fits(value, kind):
    kind, _, null = kind.partition('|')
    return TYPE_CHECKS[kind](value) or (null == 'null' and value is None)


CASES = sampling.sample(
    ((view, persona) for view in VIEWS for persona in view.personas), 120
)
RESOURCES = {view.resource for view in VIEWS} | {'extension'}


@pytest.mark.facts(
    'add-cast-rules-to-readonly-field.1',
    'add-export-locations-api',
    'add-updated-at-in-share-instance-show',
    'add-user-id-echo',
    'remove-host-field.1',
    'add_disabled_reason_to_services.3',
    'add_user_id_and_project_id_to_snapshot',
    'snapshot-inherit.3',
    'add-two-new-fields-to-share-groups',
    'LP1696669',
    'add_gateway_into_db',
    'cidr',
)
@sampling.enumeration
@pytest.mark.parametrize(
    'view, persona',
    CASES,
    ids=[' '.join((view.title, *view.parts, persona)) for view, persona in CASES],
)
def test_view_has_its_published_fields_in_every_version(sample, view, persona):
    rows = [
        row
        for row in published_api.view_fields(view.resource, *view.parts)
        if (view.resource, row.field) not in differences.MISSING_FIELDS
    ]
    served = published_api.VERSIONS[view.since :]
    for minor in published_api.versions_to_try(
        served, served, *(row.versions for row in rows)
    ):
        expected = published_api.visible_fields(rows, minor, persona == 'admin')
        items = view.fetch_items(sample, sample.apis[persona], minor)
        assert items
        for item in items:
            assert set(item) == set(expected), minor
            for name, kind in expected.items():
                assert fits(item[name], view.types.get(kind, kind)), (
                    minor,
                    name,
                    item[name],
                )


def test_every_published_view_is_tested():
    tested = {(view.resource, part) for view in VIEWS for part in view.parts}
    assert published_api.view_names(RESOURCES) - tested == set(
        differences.MISSING_VIEWS
    )
    assert tested.isdisjoint(differences.MISSING_VIEWS)


def test_tenants_see_extra_specs_that_a_type_does_not_set(sample):
    rows = published_api.inferred_extra_specs()
    for minor in published_api.VERSIONS:
        specs = sample.member.get(
            f'/types/{sample.minimal_type}', version=published_api.version_text(minor)
        )['share_type']['extra_specs']
        expected = {name for name, versions in rows if minor in versions}
        assert {
            name for name in specs if name != 'driver_handles_share_servers'
        } == expected
        assert not any(specs[name] for name in expected)
