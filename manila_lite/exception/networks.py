"""Errors of share networks, security services and share servers."""

from manila_lite.exception import families


class ShareNetworkNotFound(families.NotFound):
    message = 'Share network {share_network_id} could not be found.'


class ShareNetworkSubnetNotFound(families.NotFound):
    message = 'Share network subnet {share_network_subnet_id} could not be found.'


class SecurityServiceNotFound(families.NotFound):
    message = 'Security service {security_service_id} could not be found.'


class InvalidShareNetwork(families.Invalid):
    message = 'Invalid share network: {reason}'


class ShareNetworkNotModifiable(families.Forbidden):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkInUse(families.Conflict):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkSubnetInUse(families.Conflict):
    message = 'Share network subnet {share_network_subnet_id} is in use: {reason}'


class ShareNetworkSubnetExists(families.Conflict):
    message = 'Share network {share_network_id} already has a subnet for {where}.'


class SecurityServiceInUse(families.Forbidden):
    message = 'Security service {security_service_id} is in use: {reason}'


class SecurityServiceConflict(families.Conflict):
    message = (
        'The security service cannot be used on share network '
        '{share_network_id}: {reason}'
    )


class NetworkException(families.ManilaLiteError):
    """Base class of errors of network plug-ins."""

    message = 'The network failed: {reason}'


class NetworkBadConfigurationException(NetworkException):
    message = 'Bad network configuration: {reason}'


class NoFreeAddress(NetworkException):
    message = (
        'Not enough free addresses in {segment}: {wanted} needed, {free} '
        'of {size} free.'
    )


class ShareServerNotFound(families.NotFound):
    message = 'Share server {share_server_id} could not be found.'


class InvalidShareServer(families.Invalid):
    message = 'Invalid share server: {reason}'


class ShareServerNotMigratable(families.Conflict):
    message = 'Invalid share server: {reason}'


class ShareServerInUse(families.Conflict):
    message = 'Share server {share_server_id} is in use: it has shares or share groups.'


class ManageInvalidShareServer(InvalidShareServer):
    """A driver found no share server to manage."""

    message = (
        'Manage existing share server failed due to invalid share server: {reason}'
    )
