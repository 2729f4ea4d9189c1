"""The lines that the log has for each operation: accepted, ended, how.

They name the request, so that the id that a user reports finds them in the
logs of all services. What the service does by itself, such as polling, is
logged at DEBUG.
"""

import logging
import typing

from manila_lite import exception

LOG = logging.getLogger(__name__)


class Operation(typing.Protocol):
    """What the lines say about accepted work."""

    @property
    def kind(self) -> str: ...

    @property
    def resource(self) -> str: ...

    @property
    def resource_id(self) -> str: ...

    @property
    def share_id(self) -> str | None: ...

    @property
    def request_id(self) -> str | None: ...

    @property
    def project_id(self) -> str | None: ...

    @property
    def user_id(self) -> str | None: ...


def accepted(work: Operation) -> None:
    """Log work whose submission was committed."""
    _log(work, 'Accepted %s', describe(work))


def finished(work: Operation) -> None:
    """Log work that has succeeded."""
    _log(work, 'Finished %s', describe(work))


def failed(work: Operation, error: Exception) -> None:
    """Log work that has failed, with a traceback if it is unexpected."""
    refused = _is_refusal(error)
    LOG.log(
        logging.WARNING if refused else logging.ERROR,
        '%s %s: %s',
        'Refused' if refused else 'Failed',
        describe(work),
        ' '.join(str(error).split()) if refused else error,
        exc_info=None if refused else error,
    )


def describe(work: Operation) -> str:
    """Name the operation and the ids by which one looks for it."""
    share = f'share {work.share_id}, ' if work.share_id else ''
    return (
        f'{work.kind} ({share}{work.resource} {work.resource_id}, '
        f'project {work.project_id}, request {work.request_id})'
    )


def _log(work: Operation, text: str, *args: object) -> None:
    by_user = work.user_id or work.project_id
    LOG.log(logging.INFO if by_user else logging.DEBUG, text, *args)


def _is_refusal(error: Exception) -> bool:
    """Whether a driver or the scheduler refused what was asked."""
    return isinstance(
        error,
        (
            exception.NoValidHost,
            exception.ShareRefused,
            exception.StorageUnavailable,
            exception.ShareShrinkingPossibleDataLoss,
        ),
    ) or (isinstance(error, exception.ManilaLiteError) and error.code < 500)
