"""Specs of share group types."""

from manila_lite.api import schema, wsgi
from manila_lite.api.v2.types import specs
from manila_lite.api.v2.types.spec_values import SENT, Specs
from manila_lite.api.v2.types.specs import TypeSpecsController
from manila_lite.db.queries.types import group_types

GROUP_SPECS = Specs(bool)

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

    @wsgi.method('share_group_types_spec:create', body=CREATE, answer=specs.sent_all)
    def create(self, req: wsgi.Request, args: dict, type_id: str) -> dict:
        """Set some specs; responds with them as they were sent."""
        return self.set_all(req, args, type_id)

    @wsgi.method('share_group_types_spec:update', body=UPDATE, answer=SENT)
    def update(self, req: wsgi.Request, args: dict, type_id: str, key: str) -> dict:
        """Set the spec that the URL names."""
        return self.set_one(req, args, type_id, key)

    @wsgi.method('share_group_types_spec:delete', status=204)
    def delete(self, req: wsgi.Request, type_id: str, key: str) -> None:
        """Delete one spec."""
        self.delete_one(req, type_id, key)
