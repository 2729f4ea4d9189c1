"""Extra specs: those of every kind of types, and what share types accept."""

from collections.abc import Mapping
import re
import typing

from manila_lite import exception
from manila_lite.api import answers, schema, versions, wsgi
from manila_lite.api.fields import Field, const, fields
from manila_lite.api.schema import ValidationError
from manila_lite.context import RequestContext
from manila_lite.db.queries.types import group_types, qos_types, types as share_types
from manila_lite.db.queries.types.tables import SpecTables
from manila_lite.db.session import Session

SENT = dict[str, str | bool | int | float]
"""The shape of specs as they were sent."""


def _all(controller: type['TypeSpecsController']) -> answers.Shape:
    return {controller.specs_key: dict[str, str]}


def _sent(controller: type['TypeSpecsController']) -> answers.Shape:
    return {controller.specs_key: SENT}


def _some(controller: type['TypeSpecsController']) -> schema.Schema:
    fields: dict[str, typing.Any] = {controller.specs_key: controller.accepted}
    return schema.schema(list(fields), **fields)


def _one(controller: type['TypeSpecsController']) -> schema.Schema:
    return schema.body_of(controller.accepted)


def policies_of(resource: str) -> dict[str, str]:
    """Return the policies of the specs of types, by method."""
    names = ('index', 'show', 'create', 'update', 'delete')
    return {name: f'{resource}:{name}' for name in names}


class TypeSpecsController(wsgi.Controller):
    """Base of controllers for the specs of types.

    Subclasses name the tables, the function that reads a type the caller
    may see, the attribute of a type and key of bodies that has the specs,
    the specs that are accepted, and the policies.
    """

    tables: SpecTables
    get_type: typing.Callable[[Session, RequestContext, str], typing.Any]
    specs_key: str
    accepted: schema.Type

    @wsgi.method('index', answer=_all)
    def index(self, req: wsgi.Request, type_id: str) -> dict:
        """List all specs of the type."""
        return {self.specs_key: self._specs(req, type_id)}

    @wsgi.method('show', answer=dict[str, str])
    def show(self, req: wsgi.Request, type_id: str, key: str) -> dict:
        """Show one spec of the type."""
        specs = self._specs(req, type_id)
        if key not in specs:
            raise self.tables.error(self.tables.errors.spec_not_found, type_id, key=key)
        return {key: specs[key]}

    def _specs(self, req: wsgi.Request, type_id: str) -> dict[str, str]:
        record = self.services.db.read(self.get_type, req.ctx, type_id)
        return getattr(record, self.specs_key)

    @wsgi.method('create', body=_some, answer=_sent)
    def create(self, req: wsgi.Request, args: dict, type_id: str) -> dict:
        """Set some specs; responds with them as they were sent."""
        specs = args[self.specs_key]
        self.services.db.write(self._merge, type_id, specs, by=req.ctx)
        return {self.specs_key: req.json[self.specs_key]}

    @wsgi.method('update', body=_one, answer=SENT)
    def update(self, req: wsgi.Request, args: dict, type_id: str, key: str) -> dict:
        """Set the spec that the URL names."""
        if list(args) != [key]:
            raise exception.InvalidInput(
                reason=f'the body must contain {key} and nothing else'
            )
        self.services.db.write(self._merge, type_id, args, by=req.ctx)
        return req.json

    @wsgi.method('delete', status=204)
    def delete(self, req: wsgi.Request, type_id: str, key: str) -> None:
        """Delete one spec."""
        self.services.db.write(self.tables.delete_spec, type_id, key, by=req.ctx)

    def _merge(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        self.tables.lock(session, id)
        self.check_merge(session, id, specs)
        self.tables.set_specs(session, id, specs)

    def check_merge(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        """Raise if a locked type may not get these specs."""


TEXT = schema.string(255, 1)
"""The value of a spec, as it is stored."""

KEY = re.compile(r'[\w.:-]{1,255}')
_check_text = TEXT.at(versions.MAX)

_JSON_TYPES = {bool: 'boolean', int: 'integer', float: 'number'}


def checked_value(key: str, value: object, kinds: tuple[type, ...]) -> str:
    """Return the value of a spec, a text or one of these kinds, as text."""
    try:
        if not KEY.fullmatch(key):
            raise ValidationError(
                'must be a key of 1 to 255 letters, digits, and _ . : -'
            )
        return _check_text(str(value) if type(value) in kinds else value)
    except ValidationError as error:
        raise error.inside(key[:40]) from None


class Specs(schema.Type):
    """An object of specs: texts and values of some types, kept as text."""

    def __init__(self, *kinds: type):
        self._kinds = kinds

    def at(self, minor: int) -> schema.Check:
        def check(specs: object) -> dict[str, str]:
            if type(specs) is not dict:
                raise ValidationError('must be an object')
            return {
                key: checked_value(key, value, self._kinds)
                for key, value in specs.items()
            }

        return check

    def json_schema(self, minor: int) -> dict:
        return {
            'type': 'object',
            'propertyNames': {'pattern': f'^{KEY.pattern}$'},
            'additionalProperties': {
                'anyOf': [
                    TEXT.json_schema(minor),
                    *({'type': _JSON_TYPES[kind]} for kind in self._kinds),
                ]
            },
        }


GROUP_SPECS = Specs(bool)


class ShareGroupTypeSpecsController(TypeSpecsController):
    tables = group_types.TABLES
    get_type = staticmethod(group_types.get)
    specs_key = 'group_specs'
    accepted = GROUP_SPECS
    policies = policies_of('share_group_types_spec')


DHSS = 'driver_handles_share_servers'
SNAPSHOT_SUPPORT = 'snapshot_support'
ZONES = 'availability_zones'
MOUNT_POINT_PREFIX = 'provisioning:mount_point_prefix'
REQUIRED = (DHSS,)

# Up to this version every type supports snapshots and says so.
SNAPSHOT_SUPPORT_DEFAULT = versions.window(until='2.23')

_boolean = schema.string(
    # Letters of either case; ECMA-262 has no flag for a part of a pattern.
    pattern=re.sub(
        '[a-z]',
        lambda found: f'[{found[0]}{found[0].upper()}]',
        '(<is> *)?(1|t|true|on|y|yes|0|f|false|off|n|no)',
    ),
    description='a boolean',
)
_gigabytes = schema.integer(1)
_zones = schema.string(
    pattern=' *[^, ][^,]*(, *[^, ][^,]*)*',
    description='a list of zones with commas between them',
)
_prefix = schema.string(
    255,
    pattern=r'([A-Za-z0-9_-]|\{project_id\})*',
    description='letters, digits, _, - and {project_id}',
)

# The extra specs that the service itself uses; projects may see them.
TENANT_VISIBLE: dict[str, schema.Type] = {
    DHSS: _boolean,
    SNAPSHOT_SUPPORT: _boolean,
    'create_share_from_snapshot_support': _boolean,
    'revert_to_snapshot_support': _boolean,
    'mount_snapshot_support': _boolean,
    'mount_point_name_support': _boolean,
    'snapshot_inherit_share_access_support': _boolean,
    'replication_type': schema.one_of('writable', 'readable', 'dr'),
    'encryption_support': schema.one_of('share', 'share_server'),
    ZONES: _zones,
    'provisioning:min_share_size': _gigabytes,
    'provisioning:max_share_size': _gigabytes,
    'provisioning:max_share_extend_size': _gigabytes,
    MOUNT_POINT_PREFIX: _prefix,
    qos_types.DEFAULT_OF_SHARE_TYPE: TEXT,
}

# The values that projects see of capabilities that a type does not set.
TENANT_DEFAULTS = fields(
    Field(SNAPSHOT_SUPPORT, const(False), since='2.24'),
    Field('create_share_from_snapshot_support', const(False), since='2.24'),
    Field('revert_to_snapshot_support', const(False), since='2.24'),
    Field('mount_snapshot_support', const(False), since='2.24'),
    Field('snapshot_inherit_share_access_support', const(False), since='2.99'),
)

_CHECKS = {key: rule.at(versions.MAX) for key, rule in TENANT_VISIBLE.items()}


class _ExtraSpecs(schema.Type):
    """An object of extra specs: texts, numbers and booleans, kept as text."""

    def __init__(self, required: tuple[str, ...]):
        self._required = required

    def at(self, minor: int) -> schema.Check:
        def check(specs: object) -> dict[str, str]:
            if type(specs) is not dict:
                raise ValidationError('must be an object')
            for key in self._required:
                if key not in specs:
                    raise ValidationError('is required', key)
            return {key: _checked(key, value) for key, value in specs.items()}

        return check

    def json_schema(self, minor: int) -> dict:
        boolean = {'type': 'boolean'}
        number = {'type': 'number'}
        sent = {'anyOf': [TEXT.json_schema(minor), boolean, number]}
        rules = {key: rule.json_schema(minor) for key, rule in TENANT_VISIBLE.items()}
        return {
            'type': 'object',
            'required': list(self._required),
            'propertyNames': {'pattern': f'^{KEY.pattern}$'},
            'additionalProperties': sent,
            'properties': {
                key: {
                    'allOf': [
                        sent,
                        {'anyOf': [rule, boolean]}
                        if TENANT_VISIBLE[key] is _boolean
                        else rule,
                    ]
                }
                for key, rule in rules.items()
            }
            | {MOUNT_POINT_PREFIX: rules[MOUNT_POINT_PREFIX]},
        }


def _checked(key: str, value: object) -> str:
    if key == MOUNT_POINT_PREFIX and value == '':
        return value  # names of mount points then have no prefix
    text = checked_value(key, value, (bool, int, float))
    try:
        if key in _CHECKS:
            _CHECKS[key](text)
    except ValidationError as error:
        raise error.inside(key[:40]) from None
    return ','.join(split_zones(text)) if key == ZONES else text


EXTRA_SPECS = _ExtraSpecs(())
NEW_EXTRA_SPECS = _ExtraSpecs(REQUIRED)


def split_zones(text: str) -> list[str]:
    """Return the zones in the value of the extra spec."""
    return [zone.strip() for zone in text.split(',')]


def check_consistency(specs: Mapping[str, str]) -> None:
    """Refuse extra specs that contradict each other."""
    if specs.get('encryption_support') == 'share_server' and not share_types.is_true(
        specs.get(DHSS)
    ):
        raise exception.InvalidExtraSpec(
            reason=f'encryption_support share_server needs {DHSS}'
        )


def matches(specs: Mapping[str, str], wanted: Mapping[str, str], admin: bool) -> bool:
    """Return whether a type with these extra specs matches a filter.

    A filter by zones matches types that have them all or name none. Filters
    of projects do not match extra specs that they cannot see: they would
    find the names of back ends by trying.
    """
    if not admin:
        specs = _of_projects(specs)
    for key, value in wanted.items():
        if key == ZONES:
            if not set(split_zones(value)) <= set(split_zones(specs.get(key, value))):
                return False
        elif specs.get(key) != value:
            return False
    return True


def visible_specs(
    specs: Mapping[str, str], minor: int, admin: bool
) -> Mapping[str, str | bool]:
    """Return the extra specs that the caller may see.

    Projects see those that affect the behaviour of their shares, set or not,
    and none about back ends.
    """
    if admin:
        return specs
    return TENANT_DEFAULTS.function(minor)(None) | _of_projects(specs)


def _of_projects(specs: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in specs.items() if key in TENANT_VISIBLE}


def required_specs(specs: Mapping[str, str]) -> dict[str, str]:
    """Return the extra specs that every type has."""
    return {key: specs[key] for key in REQUIRED if key in specs}


class ShareTypeExtraSpecsController(TypeSpecsController):
    tables = share_types.TABLES
    get_type = staticmethod(share_types.get)
    specs_key = 'extra_specs'
    accepted = EXTRA_SPECS
    policies = policies_of('share_types_extra_spec')

    @wsgi.method('delete', status=202)
    def delete(self, req: wsgi.Request, type_id: str, key: str) -> None:
        """Delete one extra spec."""
        if key in REQUIRED or (
            key == SNAPSHOT_SUPPORT and req.minor in SNAPSHOT_SUPPORT_DEFAULT
        ):
            raise exception.ExtraSpecRequired(key=key)
        super().delete(req, type_id, key)

    def check_merge(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        check_consistency(share_types.get_extra_specs(session, id) | dict(specs))
