"""Actions on share networks."""

import typing

from manila_lite.api import answers, schema as s, wsgi
from manila_lite.api.v2 import targets
from manila_lite.api.v2.networks.share_networks import DETAIL, neutron_ids, show_network
from manila_lite.api.v2.networks.subnets import SUBNET_FIELDS
from manila_lite.db import rows

_ID = s.trimmed(255)  # an empty one is not found, as published
_SERVICE: dict[str, typing.Any] = {'security_service_id': _ID}
_SERVICES: dict[str, typing.Any] = {'current_service_id': _ID, 'new_service_id': _ID}
_RESTART: dict[str, typing.Any] = {'reset_operation': s.boolean}
SERVICE = s.schema([*_SERVICE], **_SERVICE)
SERVICE_CHECK = s.schema([*_SERVICE], **_SERVICE, **_RESTART)
SERVICES = s.schema([*_SERVICES], **_SERVICES)
SERVICES_CHECK = s.schema([*_SERVICES], **_SERVICES, **_RESTART)
SUBNET_CHECK = s.schema(**SUBNET_FIELDS, **_RESTART)

_IN_USE_SINCE = 63
"""The minor version since which networks in use get services."""


_CHECKED: answers.Shape = {
    'compatible': bool | None,
    answers.MayLack('hosts_check_result'): dict[str, bool | None],
}
_CHECKED_SERVICE: answers.Shape = {
    **_CHECKED,
    'requested_operation': {
        'operation': str,
        'current_security_service': str | None,
        'new_security_service': str,
    },
}


class ShareNetworkActionsController(wsgi.Controller):
    target = targets.NETWORK.loader

    @wsgi.action(
        'add_security_service',
        'share_network:add_security_service',
        status=200,
        body=SERVICE,
        answer={'share_network': DETAIL},
    )
    def add_security_service(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Attach a security service, at most one of each type."""
        service_id = self._service_id(req, args['security_service_id'])
        self.services.network_changes.add_security_service(
            req.ctx, network.id, service_id, allow_in_use=req.minor >= _IN_USE_SINCE
        )
        return show_network(self.services.db, req, network.id)

    @wsgi.action(
        'add_security_service_check',
        'share_network:add_security_service_check',
        since='2.63',
        body=SERVICE_CHECK,
        answer=_CHECKED_SERVICE,
    )
    def add_security_service_check(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Check whether a service can be added to a network in use."""
        service_id = self._service_id(req, args['security_service_id'])
        return self._check_services(req, network, args, 'add', service_id)

    @wsgi.action(
        'update_security_service',
        'share_network:update_security_service',
        since='2.63',
        body=SERVICES,
        answer={'share_network': DETAIL},
    )
    def update_security_service(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Replace a security service by another one of the same type."""
        current, new = self._two_services(req, args)
        self.services.network_changes.replace_security_service(
            req.ctx, network.id, current, new
        )
        return show_network(self.services.db, req, network.id)

    @wsgi.action(
        'update_security_service_check',
        'share_network:update_security_service_check',
        since='2.63',
        body=SERVICES_CHECK,
        answer=_CHECKED_SERVICE,
    )
    def update_security_service_check(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Check whether a service of a network in use can be replaced."""
        current, new = self._two_services(req, args)
        return self._check_services(req, network, args, 'update', new, current)

    def _check_services(
        self,
        req: wsgi.Request,
        network: rows.ShareNetworkRow,
        args: dict,
        verb: str,
        new: str,
        current: str | None = None,
    ) -> dict:
        result = self.services.network_changes.check_security_service(
            req.ctx,
            network.id,
            new,
            current,
            restart=args.get('reset_operation', False),
        )
        return _check_response(req, result) | {
            'requested_operation': {
                'operation': f'{verb}_security_service',
                'current_security_service': current,
                'new_security_service': new,
            }
        }

    @wsgi.action(
        'share_network_subnet_create_check',
        'share_network:subnet_create_check',
        since='2.70',
        body=SUBNET_CHECK,
        answer=_CHECKED,
    )
    def subnet_create_check(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Check whether a subnet can be added to a network in use."""
        return _check_response(
            req,
            self.services.network_changes.check_subnet(
                req.ctx,
                network.id,
                zone=args.get('availability_zone'),
                subnet=neutron_ids(args),
                restart=args.get('reset_operation', False),
            ),
        )

    @wsgi.action(
        'remove_security_service',
        'share_network:remove_security_service',
        status=200,
        body=SERVICE,
        answer={'share_network': DETAIL},
    )
    def remove_security_service(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> dict:
        """Detach a security service."""
        service_id = self._service_id(req, args['security_service_id'])
        self.services.network_changes.remove_security_service(
            req.ctx, network.id, service_id
        )
        return show_network(self.services.db, req, network.id)

    @wsgi.action(
        'reset_status', 'share_network:reset_status', since='2.63', body=s.STATUS
    )
    def reset_status(
        self, req: wsgi.Request, network: rows.ShareNetworkRow, args: dict
    ) -> None:
        self.services.share_networks.reset_status(req.ctx, network.id, args['status'])

    def _two_services(self, req: wsgi.Request, args: dict) -> tuple[str, str]:
        """Return the ids of the current and the new service."""
        current, new = (self._service_id(req, args[name]) for name in _SERVICES)
        return current, new

    def _service_id(self, req: wsgi.Request, service_id: str) -> str:
        """Return the id of a service if it is visible to the caller."""
        return targets.SECURITY_SERVICE.get(self.services.db, req.ctx, service_id).id


def _check_response(req: wsgi.Request, result: typing.Any) -> dict:
    """Return the check result, with its hosts for administrators."""
    body: dict = {'compatible': result.compatible}
    if req.ctx.is_admin:
        body['hosts_check_result'] = result.hosts
    return body
