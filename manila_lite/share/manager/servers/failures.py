"""Failures of share servers that are built for shares."""

from collections.abc import Mapping
import typing

from manila_lite import exception
from manila_lite.messages import Detail, detail_in


def failure_detail(error: Exception) -> Detail:
    """Return the user message detail for a server that failed to build."""
    own = detail_in(error)
    if own is None and isinstance(error, exception.NoFreeAddress):
        return Detail.NEUTRON_SUBNET_FULL
    if isinstance(error, exception.SecurityServicesUnsupported):
        return Detail.UNSUPPORTED_ADD_UDPATE_SECURITY_SERVICE
    return own or Detail.NO_SHARE_SERVER


def reported_details(error: Exception) -> Mapping[str, typing.Any]:
    """Return the details of a server that a driver reported in an error."""
    reported = getattr(error, 'detail_data', None)
    details = isinstance(reported, Mapping) and reported.get('server_details')
    return details if isinstance(details, Mapping) else {}


def no_server(reason: str) -> exception.ManilaLiteError:
    """Return the error of a share that gets no share server."""
    return exception.InvalidShareServer(
        reason=reason, message_detail=Detail.NO_SHARE_SERVER
    )
