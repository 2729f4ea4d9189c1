"""User messages: the reasons of asynchronous failures."""

from manila_lite import exception, messages as words
from manila_lite.api import answers, links, paging, wsgi
from manila_lite.api.fields import LINKS, Field, fields, fn, fn2
from manila_lite.api.filters import Filter, exact, filters
from manila_lite.db.queries import messages as queries
from manila_lite.db.rows import MessageRow
from manila_lite.db.session import Session

_SORT_KEYS = {name: name for name in queries.SORT_KEYS}
_FILTERS = filters(*exact(*queries.FILTERS))
_TIMES = filters(
    Filter('created_since', since='2.52', parse=paging.parse_time),
    Filter('created_before', since='2.52', parse=paging.parse_time),
)

ITEM = fields(
    Field('id'),
    Field('project_id'),
    Field('action_id'),
    Field('detail_id', fn(words.stored_detail, 'detail_id'), shape=str),
    Field('message_level'),
    Field('created_at'),
    Field('expires_at'),
    Field('request_id'),
    Field('links', LINKS),
    Field('resource_type'),
    Field('resource_id'),
    Field(
        'user_message',
        fn2(
            lambda row, more: words.user_message(
                row.action_id,
                row.detail_id,
                row.reason,
                row.explanation if more['is_admin'] else None,
            )
        ),
        shape=str,
    ),
)


class MessagesController(wsgi.Controller):
    def target(self, req: wsgi.Request, message_id: str) -> MessageRow:
        """Return a message of the own project."""
        row = self.services.db.read(_get, message_id)
        if row.project_id != req.ctx.project_id and not req.ctx.is_admin:
            raise exception.MessageNotFound(message_id=message_id)
        return row

    @wsgi.method(
        'message:get_all',
        answer=answers.page('messages', ITEM),
        query=(*paging.query_keys(_SORT_KEYS), _FILTERS, _TIMES),
    )
    def index(self, req: wsgi.Request) -> dict:
        """List a page of the messages of the project.

        Administrators see those of all projects.
        """
        page = paging.parse(req.query, cap=self.max_limit, sort_keys=_SORT_KEYS)
        rows = self.services.db.read(
            queries.list_messages,
            page,
            project_id=None if req.ctx.is_admin else req.ctx.project_id,
            filters=_FILTERS.values(req),
            **_TIMES.values(req),
        )
        items = ITEM.many(req.minor)(rows, _more(req))
        return paging.answer(req, page, 'messages', 'messages', items, rows)

    @wsgi.method('message:get', target=True, answer={'message': ITEM})
    def show(self, req: wsgi.Request, message: MessageRow) -> dict:
        """Show one message."""
        return {'message': ITEM.function(req.minor)(message, _more(req))}

    @wsgi.method('message:delete', target=True, status=204)
    def delete(self, req: wsgi.Request, message: MessageRow) -> None:
        """Delete a message."""
        self.services.db.write(queries.delete_message, message.id, by=req.ctx)


def _get(session: Session, message_id: str) -> MessageRow:
    """Return the message unless it has expired."""
    row = queries.get_message(session, message_id)
    if row.expires_at <= session.now:
        raise exception.MessageNotFound(message_id=message_id)
    return row


def _more(req: wsgi.Request) -> dict:
    return {'links': links.Links(req, 'messages'), 'is_admin': req.ctx.is_admin}
