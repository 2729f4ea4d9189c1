"""The specs of all kinds of types: one controller."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.api import answers, wsgi
from manila_lite.api.v2.types.spec_values import SENT
from manila_lite.context import RequestContext
from manila_lite.db.queries.types.tables import SpecTables
from manila_lite.db.session import Session


def _all(controller: type['TypeSpecsController']) -> answers.Shape:
    return {controller.specs_key: dict[str, str]}


def sent_all(controller: type['TypeSpecsController']) -> answers.Shape:
    return {controller.specs_key: SENT}


class TypeSpecsController(wsgi.Controller):
    """Base of controllers for the specs of types.

    Subclasses name the tables, the function that reads a type the caller
    may see, and the attribute of a type and key of bodies that has the
    specs. They declare `create`, `update` and `delete`, whose bodies and
    status codes differ, and the policies to `list` and `show`.
    """

    tables: SpecTables
    get_type: typing.Callable[[Session, RequestContext, str], typing.Any]
    specs_key: str

    @wsgi.method('list', answer=_all)
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

    def set_all(self, req: wsgi.Request, args: dict, type_id: str) -> dict:
        """Set some specs; return them as they were sent."""
        specs = args[self.specs_key]
        self.services.db.write(self._merge, type_id, specs, by=req.ctx)
        return {self.specs_key: req.json[self.specs_key]}

    def set_one(self, req: wsgi.Request, args: dict, type_id: str, key: str) -> dict:
        """Set the spec that the URL names; return it as it was sent."""
        if list(args) != [key]:
            raise exception.InvalidInput(
                reason=f'the body must contain {key} and nothing else'
            )
        self.services.db.write(self._merge, type_id, args, by=req.ctx)
        return req.json

    def delete_one(self, req: wsgi.Request, type_id: str, key: str) -> None:
        """Delete a spec."""
        self.services.db.write(self.tables.delete_spec, type_id, key, by=req.ctx)

    def _merge(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        self.tables.lock(session, id)
        self.check_merge(session, id, specs)
        self.tables.set_specs(session, id, specs)

    def check_merge(self, session: Session, id: str, specs: Mapping[str, str]) -> None:
        """Raise if a locked type may not get these specs."""
