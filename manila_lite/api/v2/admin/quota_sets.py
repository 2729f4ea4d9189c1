"""Quota sets: the limits of a project, or of one user or type in it."""

from collections.abc import Callable, Mapping
import typing

from oslo_db import exception as db_exc

from manila_lite import exception
from manila_lite.api import schema as s
from manila_lite.api import versions
from manila_lite.api import wsgi
from manila_lite.context import RequestContext
from manila_lite.db.queries.admin.quotas import Scope
from manila_lite.db.queries.types import types as share_types
from manila_lite.db.session import Session
from manila_lite.quota import sets
from manila_lite.quota.limits import LARGEST
from manila_lite.quota.limits import RESOURCES
from manila_lite.quota.limits import UNLIMITED

_ID_LENGTH = 255
_FOR_SHARE_TYPES = versions.window(since='2.39')
_WINDOWS = {
    resource.name: versions.window(since=resource.since)
    for resource in RESOURCES
}

LIMITS = {
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


def limits_of_version(
    limits: Mapping[str, object], minor: int
) -> dict[str, object]:
    """The limits that a version knows of."""
    return {
        name: limit
        for name, limit in limits.items()
        if minor in _WINDOWS[name]
    }


class QuotaTarget(typing.NamedTuple):
    """Whose quotas a request is about; policies look at the first two."""

    project_id: str
    user_id: str | None = None
    share_type: str | None = None  # its id or its name


class QuotaSetsController(wsgi.Controller):
    def project(self, req: wsgi.Request, project_id: str) -> QuotaTarget:
        """The project of the URL, and nobody in it."""
        return QuotaTarget(_checked_id('project_id', project_id))

    def target(self, req: wsgi.Request, project_id: str) -> QuotaTarget:
        """What the URL and its query are about."""
        user_id = req.query.get('user_id')
        share_type = req.query.get('share_type')
        if user_id is not None:
            _checked_id('user_id', user_id)
        if share_type is not None and req.minor not in _FOR_SHARE_TYPES:
            raise exception.InvalidInput(
                reason='share_type is served from version '
                f'{versions.text(_FOR_SHARE_TYPES.since)} on'
            )
        if user_id is not None and share_type is not None:
            raise exception.InvalidInput(
                reason='user_id and share_type exclude each other'
            )
        return self.project(req, project_id)._replace(
            user_id=user_id, share_type=share_type
        )

    @wsgi.method('quota_set:show', target=True)
    def show(self, req: wsgi.Request, asked: QuotaTarget) -> dict:
        limits = self._run(self.services.db.read, req, asked, sets.show)
        return _answer(req, limits, id=asked.project_id)

    @wsgi.method('quota_set:show', target=True)
    def detail(self, req: wsgi.Request, asked: QuotaTarget) -> dict:
        """The limits, each with what is used of it."""
        found = self._run(self.services.db.read, req, asked, sets.show_usage)
        return _answer(
            req,
            {name: allowance._asdict() for name, allowance in found.items()},
            id=asked.project_id,
        )

    @wsgi.method('quota_set:show', target='project')
    def defaults(self, req: wsgi.Request, asked: QuotaTarget) -> dict:
        """The limits of a project for which none were set."""
        limits = self.services.db.read(sets.show_class, self.services.limits)
        return _answer(req, limits, id=asked.project_id)

    @wsgi.method('quota_set:update', target=True, body=UPDATE)
    def update(
        self, req: wsgi.Request, asked: QuotaTarget, args: dict
    ) -> dict:
        """Set some limits; they hold for the next request already."""
        args.pop('tenant_id', None)
        force = args.pop('force', False)
        try:
            limits = self._run(
                self.services.db.write,
                req,
                asked,
                sets.change,
                args,
                force=force,
            )
        except db_exc.DBReferenceError as error:  # deleted meanwhile
            raise exception.ShareTypeNotFound(
                share_type_id=asked.share_type
            ) from error
        return _answer(req, limits)

    @wsgi.method('quota_set:delete', target=True, status=202)
    def delete(self, req: wsgi.Request, asked: QuotaTarget) -> None:
        """Go back to the limits of the project, or to the defaults."""
        self._run(self.services.db.write, req, asked, sets.reset)

    def _run(
        self,
        transaction: Callable,
        req: wsgi.Request,
        asked: QuotaTarget,
        call: Callable,
        *args: object,
        **kwargs: object,
    ) -> typing.Any:
        """What the call answers for the scope that is asked for."""
        return transaction(
            lambda session: call(
                session,
                self.services.limits,
                _scope(session, req.ctx, asked),
                *args,
                **kwargs,
            )
        )


def _scope(session: Session, ctx: RequestContext, asked: QuotaTarget) -> Scope:
    """The scope asked for; a share type must be usable by the project."""
    if asked.share_type is None:
        return sets.scope_of(asked.project_id, user_id=asked.user_id)
    found = share_types.find_usable(
        session, asked.share_type, asked.project_id, ctx.is_admin
    )
    if found is None:
        raise exception.ShareTypeNotFound(share_type_id=asked.share_type)
    return sets.scope_of(asked.project_id, share_type_id=found.id)


def _answer(
    req: wsgi.Request, limits: Mapping[str, object], **more: object
) -> dict:
    return {'quota_set': more | limits_of_version(limits, req.minor)}


def _checked_id(name: str, id: str) -> str:
    """The id; raises InvalidInput for one that cannot be stored.

    An empty user is refused, too: it would mean the whole project.
    """
    if not 1 <= len(id) <= _ID_LENGTH:
        raise exception.InvalidInput(
            reason=f'{name} must have 1 to {_ID_LENGTH} characters'
        )
    return id
