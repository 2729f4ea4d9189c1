"""Quota sets of projects, users, share types and classes.

Of the classes only `default` has an effect, as the defaults of all projects.
Others are stored and shown.
"""

from collections.abc import Callable, Mapping
import typing

from oslo_db import exception as db_exc

from manila_lite import exception
from manila_lite.api import schema as s, versions, wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.api.filters import Filter
from manila_lite.context import RequestContext
from manila_lite.db.queries.quotas.quotas import Scope
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.session import Session
from manila_lite.quota import sets
from manila_lite.quota.limits import LARGEST, RESOURCES, UNLIMITED

_ID_LENGTH = 255
_FOR_SHARE_TYPES = versions.window(since='2.39')
_WINDOWS = {
    resource.name: versions.window(since=resource.since) for resource in RESOURCES
}

LIMITS: dict[str, typing.Any] = {
    resource.name: s.since(
        resource.since, s.integer(UNLIMITED, LARGEST), below='refuse'
    )
    for resource in RESOURCES
}
UPDATE = s.schema(
    wrapper='quota_set',
    missing=400,
    extra='refuse',
    tenant_id=s.anything,
    force=s.boolean,
    **LIMITS,
)


UPDATED = fields(
    *(Field(resource.name, since=resource.since, shape=int) for resource in RESOURCES)
)
SHOWN = fields(Field('id', shape=str), *UPDATED.rows)
_WITH_USAGE = fields(
    Field('id', shape=str),
    *(
        Field(
            resource.name,
            since=resource.since,
            shape={'limit': int, 'in_use': int, 'reserved': int},
        )
        for resource in RESOURCES
    ),
)
_QUERY = (Filter('user_id'), Filter('share_type', since='2.39'))


def limits_of_version(limits: Mapping[str, object], minor: int) -> dict[str, object]:
    """Return the limits that a version has."""
    return {name: limit for name, limit in limits.items() if minor in _WINDOWS[name]}


class QuotaTarget(typing.NamedTuple):
    """The scope of a request; policies check the first two fields."""

    project_id: str
    user_id: str | None = None
    share_type: str | None = None  # its id or its name


class QuotaSetsController(wsgi.Controller):
    def target(self, req: wsgi.Request, project_id: str) -> QuotaTarget:
        """Return the project, user and share type of the URL and query."""
        user_id = req.query.get('user_id')
        share_type = req.query.get('share_type')
        if user_id is not None:
            _check_id('user_id', user_id)
        if share_type is not None and req.minor not in _FOR_SHARE_TYPES:
            raise exception.InvalidInput(
                reason='share_type is supported since version '
                f'{versions.text(_FOR_SHARE_TYPES.since)}'
            )
        if user_id is not None and share_type is not None:
            raise exception.InvalidInput(
                reason='user_id and share_type are mutually exclusive'
            )
        return QuotaTarget(_check_id('project_id', project_id), user_id, share_type)

    @wsgi.method(
        'quota_set:show', target=True, answer={'quota_set': SHOWN}, query=_QUERY
    )
    def show(self, req: wsgi.Request, quota_target: QuotaTarget) -> dict:
        limits = self._run(self.services.db.read, req, quota_target, sets.show)
        return _response(req, limits, id=quota_target.project_id)

    @wsgi.method(
        'quota_set:show', target=True, answer={'quota_set': _WITH_USAGE}, query=_QUERY
    )
    def detail(self, req: wsgi.Request, quota_target: QuotaTarget) -> dict:
        """Show the limits with their usage."""
        found = self._run(self.services.db.read, req, quota_target, sets.show_usage)
        return _response(
            req,
            {name: allowance._asdict() for name, allowance in found.items()},
            id=quota_target.project_id,
        )

    @wsgi.method('quota_set:show', answer={'quota_set': SHOWN})
    def defaults(self, req: wsgi.Request, project_id: str) -> dict:
        """Show the default limits, which are the same for every project."""
        _check_id('project_id', project_id)
        limits = self.services.db.read(sets.show_class, self.services.limits)
        return _response(req, limits, id=project_id)

    @wsgi.method(
        'quota_set:update',
        target=True,
        body=UPDATE,
        answer={'quota_set': UPDATED},
        query=_QUERY,
    )
    def update(self, req: wsgi.Request, quota_target: QuotaTarget, args: dict) -> dict:
        """Set some limits; they apply from the next request on."""
        args.pop('tenant_id', None)
        force = args.pop('force', False)
        check_not_empty(args)
        try:
            limits = self._run(
                self.services.db.write,
                req,
                quota_target,
                sets.change,
                args,
                force=force,
            )
        except db_exc.DBReferenceError as error:  # deleted meanwhile
            raise exception.ShareTypeNotFound(
                share_type_id=quota_target.share_type
            ) from error
        return _response(req, limits)

    @wsgi.method('quota_set:delete', target=True, status=202, query=_QUERY)
    def delete(self, req: wsgi.Request, quota_target: QuotaTarget) -> None:
        """Reset to the limits of the project, or to the defaults."""
        self._run(self.services.db.write, req, quota_target, sets.reset)

    def _run(
        self,
        transaction: Callable,
        req: wsgi.Request,
        quota_target: QuotaTarget,
        call: Callable,
        *args: object,
        **kwargs: object,
    ) -> typing.Any:
        """Run the call for the requested scope."""
        return transaction(
            lambda session: call(
                session,
                self.services.limits,
                _scope(session, req.ctx, quota_target),
                *args,
                **kwargs,
            )
        )


def _scope(session: Session, ctx: RequestContext, quota_target: QuotaTarget) -> Scope:
    """Return the requested scope; the project must have its type."""
    if quota_target.share_type is None:
        return sets.scope_of(quota_target.project_id, user_id=quota_target.user_id)
    wanted = quota_target.share_type
    found = share_types.find_usable(
        session, wanted, quota_target.project_id, ctx.is_admin
    )
    if found is None or wanted not in (found.id, found.name):
        # MariaDB finds a name with further spaces at its end, too.
        raise exception.ShareTypeNotFound(share_type_id=quota_target.share_type)
    return sets.scope_of(quota_target.project_id, share_type_id=found.id)


def _response(req: wsgi.Request, limits: Mapping[str, object], **more: object) -> dict:
    return {'quota_set': more | limits_of_version(limits, req.minor)}


def check_not_empty(limits: Mapping[str, object]) -> None:
    """Refuse an update that would change nothing."""
    if not limits:
        raise exception.InvalidInput(reason='at least one quota is required')


def _check_id(name: str, id: str) -> str:
    """Return the id; raises InvalidInput if it cannot be stored.

    An empty user id is refused too: it would mean the whole project.
    """
    if not 1 <= len(id) <= _ID_LENGTH or id != id.strip():
        raise exception.InvalidInput(
            reason=f'{name} must have 1 to {_ID_LENGTH} characters, without '
            'white space at either end'
        )
    return id


_NAME_LENGTH = 255

CLASS_UPDATE = s.schema(
    wrapper='quota_class_set',
    missing=400,
    extra='refuse',
    class_name=s.anything,
    **LIMITS,
)


class QuotaClassSetsController(wsgi.Controller):
    @wsgi.method('quota_class_set:show', answer={'quota_class_set': SHOWN})
    def show(self, req: wsgi.Request, class_name: str) -> dict:
        limits = self.services.db.read(
            sets.show_class, self.services.limits, class_name
        )
        return {
            'quota_class_set': {
                'id': class_name,
                **limits_of_version(limits, req.minor),
            }
        }

    @wsgi.method(
        'quota_class_set:update', body=CLASS_UPDATE, answer={'quota_class_set': UPDATED}
    )
    def update(self, req: wsgi.Request, args: dict, class_name: str) -> dict:
        """Set some limits; they apply at once to projects without own ones."""
        if len(class_name) > _NAME_LENGTH:
            raise exception.InvalidInput(
                reason=f'the name of a class may have at most {_NAME_LENGTH} characters'
            )
        args.pop('class_name', None)  # the one in the URL counts
        check_not_empty(args)
        limits = self.services.db.write(
            sets.change_class, self.services.limits, class_name, args
        )
        return {'quota_class_set': limits_of_version(limits, req.minor)}
