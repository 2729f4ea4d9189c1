import jsonschema
import pytest

from manila_lite.api.schema import ValidationError
from manila_lite.api.v2.types import extra_specs
from manila_lite.db.queries.types import types as share_types

SERVERS = {'driver_handles_share_servers': 'False'}


@pytest.mark.parametrize(
    'word, truth',
    [
        ('True', True),
        ('yes', True),
        ('<is> True', True),
        ('<is> on', True),
        ('<IS>1', True),
        ('False', False),
        ('<is> False', False),
        ('n', False),
    ],
)
def test_every_accepted_boolean_is_parsed(word, truth):
    check = extra_specs.EXTRA_SPECS.at(0)
    assert check({'snapshot_support': word}) == {'snapshot_support': word}
    assert share_types.is_true(word) is truth


@pytest.mark.parametrize(
    'specs',
    [
        {},
        {'a': 'b'},
        {'a': True},
        {'a': 1},
        {'a': 1.5},
        {'a': []},
        {'a': ''},
        {'a b': 'c'},
        {'snapshot_support': True},
        {'snapshot_support': 'maybe'},
        {'replication_type': 'dr'},
        {'replication_type': True},
        {'replication_type': 'x'},
        {'provisioning:min_share_size': '3'},
        {'provisioning:min_share_size': 3},
        {'provisioning:min_share_size': 'x'},
        {'availability_zones': ','},
        {'availability_zones': 'a, b'},
        {'a': 'x' * 256},
        {'': 'x'},
        [],
        None,
    ],
)
@pytest.mark.parametrize('kind', [extra_specs.EXTRA_SPECS, extra_specs.NEW_EXTRA_SPECS])
@pytest.mark.parametrize('given', [{}, SERVERS])
def test_json_schema_accepts_the_same_specs(kind, given, specs):
    if type(specs) is dict:
        specs = given | specs
    try:
        kind.at(0)(specs)
        accepted = True
    except ValidationError:
        accepted = False
    validator = jsonschema.Draft202012Validator(kind.json_schema(0))
    assert validator.is_valid(specs) is accepted


@pytest.mark.parametrize(
    'text', ['a,' * 127, ' ,' * 127, 'a ' * 127, ',' * 255, 'aa,' * 84 + ',']
)
def test_list_of_zones_is_refused_quickly(text):
    with pytest.raises(ValidationError):
        extra_specs.EXTRA_SPECS.at(0)({'availability_zones': text + ', '})


@pytest.mark.parametrize(
    'specs, wanted, met',
    [
        ({}, {}, True),
        ({'a': 'b'}, {'a': 'b'}, True),
        ({'a': 'b'}, {'a': 'c'}, False),
        ({}, {'a': 'b'}, False),
        ({}, {'availability_zones': 'x,y'}, True),
        ({'availability_zones': 'x'}, {'availability_zones': 'x,y'}, False),
        ({'availability_zones': 'y,x'}, {'availability_zones': 'x, y'}, True),
    ],
)
def test_filters_by_extra_specs(specs, wanted, met):
    assert extra_specs.matches(specs, wanted, admin=True) is met


def test_projects_see_the_published_extra_specs():
    assert set(extra_specs.TENANT_VISIBLE) == {
        'driver_handles_share_servers',
        'snapshot_support',
        'create_share_from_snapshot_support',
        'revert_to_snapshot_support',
        'mount_snapshot_support',
        'replication_type',
        'mount_point_name_support',
        'snapshot_inherit_share_access_support',
        'availability_zones',
        'encryption_support',
        'provisioning:max_share_size',
        'provisioning:min_share_size',
        'provisioning:max_share_extend_size',
        'provisioning:mount_point_prefix',
        'default_qos_type',
    }
