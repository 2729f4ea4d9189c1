"""Specs of share group types."""

import typing

from manila_lite.api import schema
from manila_lite.api import wsgi
from manila_lite.api.schema import ValidationError
from manila_lite.api.v2.types import extra_specs
from manila_lite.api.v2.types.specs import TypeSpecsController
from manila_lite.db.queries.types import group_types


class _GroupSpecs(schema.Type):
    """An object of group specs: texts and booleans, kept as text."""

    def at(self, minor: int) -> schema.Check:
        def check(specs: typing.Any) -> dict[str, str]:
            if type(specs) is not dict:
                raise ValidationError('must be an object')
            return {
                key: extra_specs.checked_value(key, value, (bool,))
                for key, value in specs.items()
            }

        return check

    def json_schema(self, minor: int) -> dict:
        return {
            'type': 'object',
            'propertyNames': {'pattern': f'^{extra_specs.KEY.pattern}$'},
            'additionalProperties': {
                'anyOf': [
                    extra_specs.TEXT.json_schema(minor),
                    {'type': 'boolean'},
                ]
            },
        }


GROUP_SPECS = _GroupSpecs()

CREATE = schema.schema(['group_specs'], group_specs=GROUP_SPECS)
UPDATE = schema.body_of(GROUP_SPECS)


class ShareGroupTypeSpecsController(TypeSpecsController):
    tables = group_types.TABLES
    get_type = staticmethod(group_types.get)
    specs_key = 'group_specs'
    policies = {
        'list': 'share_group_types_spec:index',
        'show': 'share_group_types_spec:show',
    }

    @wsgi.method('share_group_types_spec:create', body=CREATE)
    def create(self, req: wsgi.Request, args: dict, type_id: str) -> dict:
        """Set some specs; responds with them as they were sent."""
        return self.set_all(req, args, type_id)

    @wsgi.method('share_group_types_spec:update', body=UPDATE)
    def update(
        self, req: wsgi.Request, args: dict, type_id: str, key: str
    ) -> dict:
        """Set the spec that the URL names."""
        return self.set_one(req, args, type_id, key)

    @wsgi.method('share_group_types_spec:delete', status=204)
    def delete(self, req: wsgi.Request, type_id: str, key: str) -> None:
        """Delete one spec."""
        self.delete_one(req, type_id, key)
