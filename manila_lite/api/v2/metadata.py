"""The metadata of all resources: one controller, and its wire format."""

from collections.abc import Collection, Mapping
import typing

from manila_lite import exception
from manila_lite.api import schema as s, wsgi
from manila_lite.context import RequestContext
from manila_lite.db.queries.metadata import MetadataTable


class IdentifiedRow(typing.Protocol):
    """A row, or a named tuple, with an id."""

    @property
    def id(self) -> str: ...


VALUES = s.schema(['metadata'], metadata=s.metadata)


class MetadataController(wsgi.Controller):
    """Base of controllers for the metadata of a resource.

    It is mixed with a controller that has the target. Subclasses name their
    table and the policies to `get`, `update` and `delete`. If the metadata
    is not that of the target itself, `parent` finds its row by the rest of
    the path.
    """

    table: MetadataTable

    @property
    def admin_only(self) -> frozenset[str]:
        """The keys that need the policy `update_admin_only` to change."""
        return frozenset()

    @wsgi.method('get', target=True, answer={'metadata': dict[str, str]})
    def index(self, req: wsgi.Request, target: IdentifiedRow, **path: str) -> dict:
        return _response(self.read(self.parent(req, target, path)))

    @wsgi.method('get', target=True, answer={'meta': dict[str, str]})
    def show(
        self, req: wsgi.Request, target: IdentifiedRow, key: str, **path: str
    ) -> dict:
        """Return one key, under another name than in the full response."""
        found = self.read(self.parent(req, target, path))
        if key not in found:
            raise exception.MetadataItemNotFound(key=key)
        return {'meta': {key: found[key]}}

    @wsgi.method(
        'update', target=True, body=VALUES, answer={'metadata': dict[str, str]}
    )
    def create(
        self, req: wsgi.Request, target: IdentifiedRow, args: dict, **path: str
    ) -> dict:
        """Set these keys and keep the others."""
        return self._write(req, target, path, args['metadata'])

    @wsgi.method(
        'update', target=True, body=VALUES, answer={'metadata': dict[str, str]}
    )
    def create_one(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        args: dict,
        key: str,
        **path: str,
    ) -> dict:
        """Set the key of the URL."""
        values = args['metadata']
        if set(values) != {key}:
            raise exception.InvalidInput(
                reason=f'metadata must have exactly the key of the URL, {key}'
            )
        return self._write(req, target, path, values)

    @wsgi.method(
        'update', target=True, body=VALUES, answer={'metadata': dict[str, str]}
    )
    def replace(
        self, req: wsgi.Request, target: IdentifiedRow, args: dict, **path: str
    ) -> dict:
        """Replace all keys, but keep those that the caller may not change."""
        return self._write(req, target, path, args['metadata'], replace=True)

    @wsgi.method('delete', target=True)
    def delete(
        self, req: wsgi.Request, target: IdentifiedRow, key: str, **path: str
    ) -> None:
        parent = self.parent(req, target, path)
        self._check_keys(req, target, [key])
        if not self.services.db.write(self.table.remove, parent.id, [key]):
            raise exception.MetadataItemNotFound(key=key)

    def _write(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        path: Mapping[str, str],
        values: dict[str, str],
        *,
        replace: bool = False,
    ) -> dict:
        parent = self.parent(req, target, path)
        self._check_keys(req, target, values)
        return _response(self.set_values(req, target, parent, values, replace=replace))

    def _check_keys(
        self, req: wsgi.Request, target: IdentifiedRow, keys: Collection[str]
    ) -> None:
        if self.admin_only:
            refuse_admin_only(
                req.ctx,
                keys,
                self.admin_only,
                self.policies['update_admin_only'],
                target,
            )

    def parent(
        self, req: wsgi.Request, target: IdentifiedRow, path: Mapping[str, str]
    ) -> IdentifiedRow:
        """Return the row that the metadata belongs to."""
        return target

    def read(self, parent: IdentifiedRow) -> dict[str, str]:
        return self.services.db.read(self.table.get, parent.id)

    def set_values(
        self,
        req: wsgi.Request,
        target: IdentifiedRow,
        parent: IdentifiedRow,
        values: dict[str, str],
        *,
        replace: bool,
    ) -> dict[str, str]:
        """Set these keys and, with `replace`, remove others; return all metadata."""
        if not replace:
            return self.services.db.write(self.table.merge, parent.id, values)
        return self.services.db.write(
            self.table.replace, parent.id, values, self.protected_keys(req, target)
        )

    def protected_keys(
        self, req: wsgi.Request, target: IdentifiedRow
    ) -> frozenset[str]:
        """Return the keys that the caller may not remove."""
        keep = self.admin_only
        if keep and req.ctx.can(self.policies['update_admin_only'], target):
            return frozenset()
        return keep


def _response(found: dict[str, str]) -> dict:
    return {'metadata': found}


def refuse_admin_only(
    ctx: RequestContext,
    keys: Collection[str],
    admin_only: Collection[str],
    policy: str,
    target: object = None,
) -> None:
    """Refuse keys that only administrators may change."""
    protected = sorted(set(keys) & set(admin_only))
    if protected and not ctx.can(policy, target):
        raise exception.AdminOnlyMetadata(keys=', '.join(protected))
