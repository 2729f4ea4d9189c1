"""Errors of share networks, security services and share servers."""

from manila_lite.exception.families import (
    Conflict,
    Forbidden,
    Invalid,
    ManilaLiteError,
    NotFound,
)


class ShareNetworkNotFound(NotFound):
    message = 'Share network {share_network_id} could not be found.'


class ShareNetworkSubnetNotFound(NotFound):
    message = 'Share network subnet {share_network_subnet_id} could not be found.'


class SecurityServiceNotFound(NotFound):
    message = 'Security service {security_service_id} could not be found.'


class InvalidShareNetwork(Invalid):
    message = 'Invalid share network: {reason}'


class ShareNetworkNotModifiable(Forbidden):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkInUse(Conflict):
    message = 'Share network {share_network_id} is in use: {reason}'


class ShareNetworkSubnetInUse(Conflict):
    message = 'Share network subnet {share_network_subnet_id} is in use: {reason}'


class ShareNetworkSubnetExists(Conflict):
    message = 'Share network {share_network_id} already has a subnet for {where}.'


class SecurityServiceInUse(Forbidden):
    message = 'Security service {security_service_id} is in use: {reason}'


class SecurityServiceConflict(Conflict):
    message = (
        'The security service cannot be used on share network '
        '{share_network_id}: {reason}'
    )


class NetworkException(ManilaLiteError):
    """Base class of errors of network plug-ins."""

    message = 'The network failed: {reason}'


class NetworkBadConfigurationException(NetworkException):
    message = 'Bad network configuration: {reason}'


class NoFreeAddress(NetworkException):
    message = (
        'Not enough free addresses in {segment}: {wanted} needed, {free} '
        'of {size} free.'
    )


class ShareServerNotFound(NotFound):
    message = 'Share server {share_server_id} could not be found.'


class InvalidShareServer(Invalid):
    message = 'Invalid share server: {reason}'


class ShareServerNotMigratable(Conflict):
    message = 'Invalid share server: {reason}'


class ShareServerInUse(Conflict):
    message = 'Share server {share_server_id} is in use: it has shares or share groups.'


class ManageInvalidShareServer(InvalidShareServer):
    """A driver found no share server to manage."""

    message = (
        'Manage existing share server failed due to invalid share server: {reason}'
    )
