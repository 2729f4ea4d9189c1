"""Security services: list, show, create, update, delete."""

import typing

from manila_lite import exception
from manila_lite.api import paging, schema as s, wsgi
from manila_lite.api.fields import Field, child, const, fields
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.api.v2 import targets
from manila_lite.db import rows
from manila_lite.db.queries import pages
from manila_lite.db.queries.networks import security_services as records

ACTIVE_DIRECTORY = 'active_directory'
TYPES = ('ldap', 'kerberos', ACTIVE_DIRECTORY)

_TEXT = s.string(255, nullable=True)
_FIELDS: dict[str, typing.Any] = {
    'name': _TEXT,
    'description': _TEXT,
    'dns_ip': s.string(64, nullable=True),
    'server': _TEXT,
    'domain': _TEXT,
    'user': _TEXT,
    'password': _TEXT,
    'ou': _TEXT,
    'default_ad_site': s.since('2.76', _TEXT, below='refuse'),
}
_TYPE = s.one_of(*TYPES)

CREATE = s.schema(['type'], wrapper='security_service', type=_TYPE, **_FIELDS)
UPDATE = s.schema(wrapper='security_service', type=_TYPE, **_FIELDS)

_ONLY_STATUS = 'new'
_STATUS = Field('status', const(_ONLY_STATUS))

SUMMARY = fields(Field('id'), Field('name'), Field('type'), _STATUS)
_DETAIL = (
    Field('id'),
    Field('name'),
    Field('type'),
    _STATUS,
    Field('created_at'),
    Field('updated_at'),
    Field('description'),
    Field('dns_ip'),
    Field('server'),
    Field('domain'),
    Field('user'),
    Field('password'),
    Field('project_id'),
    Field('ou', since='2.44'),
    Field('default_ad_site', since='2.76'),
)
DETAIL = fields(*_DETAIL)
LIST_DETAIL = fields(
    *_DETAIL, Field('share_networks', child('networks', []), shape=list[str])
)

_FILTERS = filters(
    *exact('id', 'name', 'type', 'user', 'server', 'dns_ip', 'domain'),
    Filter('ou', since='2.44'),
    Filter('default_ad_site', since='2.76'),
)


class SecurityServicesController(paging.ListController):
    target = targets.SECURITY_SERVICE.loader

    path = 'security-services'
    key = 'security_services'
    summary = SUMMARY
    details = LIST_DETAIL
    filters = (
        _FILTERS,
        Filter('all_tenants', parse=paging.parse_flag),
        *exact('project_id', 'share_network_id', 'status'),
    )
    policies = {'index': 'security_service:index', 'detail': 'security_service:detail'}

    def read_page(
        self, req: wsgi.Request, page: paging.Page, *, detailed: bool
    ) -> pages.Listing:
        return self.services.db.read(
            records.list_page, self._parse_filters(req), page, detailed=detailed
        )

    def _parse_filters(self, req: wsgi.Request) -> records.SecurityServiceFilter:
        """Return the filter of the query; unknown keys are ignored."""
        query = req.query
        all_projects = paging.parse_flag(query, 'all_tenants') and req.ctx.can(
            'security_service:get_all_security_services'
        )
        network_id = query.get('share_network_id')
        if network_id is not None:
            targets.NETWORK.get(self.services.db, req.ctx, network_id)
            all_projects = all_projects or bool(req.ctx.is_admin)
        wanted = _FILTERS.values(req)
        if query.get('status', _ONLY_STATUS) != _ONLY_STATUS:
            wanted['id'] = ''
        return records.SecurityServiceFilter(
            project_id=(
                query.get('project_id') or None if all_projects else req.ctx.project_id
            ),
            exact=wanted,
            share_network_id=network_id,
        )

    @wsgi.method(
        'security_service:show', target=True, answer={'security_service': DETAIL}
    )
    def show(self, req: wsgi.Request, service: rows.SecurityServiceRow) -> dict:
        return _response(req, service)

    @wsgi.method(
        'security_service:create', body=CREATE, answer={'security_service': DETAIL}
    )
    def create(self, req: wsgi.Request, args: dict) -> dict:
        _check_site(args)
        return _response(
            req,
            self.services.db.write(
                records.create, req.ctx.project_id, args, by=req.ctx
            ),
        )

    @wsgi.method(
        'security_service:update',
        target=True,
        body=UPDATE,
        answer={'security_service': DETAIL},
    )
    def update(
        self, req: wsgi.Request, service: rows.SecurityServiceRow, args: dict
    ) -> dict:
        """Update a service; one in use allows few changes."""
        if args.keys() & {'type', 'server', 'default_ad_site'}:
            _check_site(
                {
                    'type': service.type,
                    'server': service.server,
                    'default_ad_site': service.default_ad_site,
                    **args,
                }
            )
        return _response(
            req, self.services.db.write(records.update, service.id, args, by=req.ctx)
        )

    @wsgi.method('security_service:delete', target=True, status=202)
    def delete(self, req: wsgi.Request, service: rows.SecurityServiceRow) -> None:
        self.services.db.write(records.delete, service.id, by=req.ctx)


def _check_site(values: typing.Mapping[str, typing.Any]) -> None:
    if (
        values['type'] == ACTIVE_DIRECTORY
        and values.get('server')
        and values.get('default_ad_site')
    ):
        raise exception.InvalidInput(
            reason='server and default_ad_site are mutually exclusive in a '
            f'service of type {ACTIVE_DIRECTORY}'
        )


def _response(req: wsgi.Request, service: rows.SecurityServiceRow) -> dict:
    return {'security_service': DETAIL.function(req.minor)(service)}
