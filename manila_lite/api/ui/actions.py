"""Actions on resources, as requests to the API, and why one is not possible.

The API decides; a reason that is known before spares the user the attempt.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import re
import typing
import urllib.parse

from manila_lite.api.ui import front
from manila_lite.api.ui.api_client import Refused
from manila_lite.api.ui.listing import LISTED, SELECTED, Collection
from manila_lite.api.ui.visit import Answer, Handler, Visit
from manila_lite.states.machine import Machine

Form = Mapping[str, str]
Request = (
    tuple[str, str, typing.Any] | tuple[str, str, typing.Any, Mapping[str, object]]
)
"""Method, path, body, and a query if there is one."""

Requested = Callable[[dict, Form], Request]
"""Returns the request that acts on a resource with the fields of a form."""

Reasons = dict[str, str | None]
"""Why actions are not possible, by their names; None for those that are."""

MOST_SELECTED = 200
"""Rows that one request acts on; no page shows more of them."""

NOT_ALLOWED = 'Policies do not allow you this.'


class Action(typing.NamedTuple):
    """An action: its policy, the move it begins with, and its request.

    A dangerous one is confirmed by typing the name of the resource.
    """

    policy: str
    request: Requested
    event: str | None = None
    is_dangerous: bool = False


class Outcome(typing.NamedTuple):
    """The outcome of an action on one of several resources, shown at `path`."""

    path: str
    title: str
    refusal: str | None


class Kept(typing.NamedTuple):
    """The input of a refused form, the field that is wrong, and why."""

    form: Form = {}
    wrong: str | None = None
    reason: str | None = None


class ActionForms(typing.NamedTuple):
    """What a template needs to show the forms of actions on a resource."""

    path: str
    title: str
    form_token: str
    reasons: Reasons
    sent: str
    kept_form: Kept

    def kept(self, name: str, hidden: Form) -> Kept:
        """Return what was typed into the form of an action that was refused.

        Of forms with the same path, that with these hidden fields was sent.
        """
        found = self.kept_form
        is_it = self.sent == f'{self.path}/{name}' and all(
            found.form.get(field) == value for field, value in hidden.items()
        )
        if not is_it:
            return Kept()
        return found._replace(wrong=None) if found.wrong in hidden else found


class Actions:
    """The actions on resources of a kind, by the last part of their paths."""

    def __init__(self, noun: str, machine: Machine, actions: Mapping[str, Action]):
        self._noun, self._machine, self._actions = noun, machine, actions

    def __iter__(self) -> Iterator[str]:
        return iter(self._actions)

    def forms(
        self,
        visit: Visit,
        resource: dict,
        path: str,
        known: Mapping[str, str | None] | None = None,
        refused: Refused | None = None,
    ) -> ActionForms:
        """Return the forms; `known` are reasons beyond policy and status.

        A form that was refused keeps its input.
        """
        reasons = {
            name: self._reason(visit, resource, action) or (known or {}).get(name)
            for name, action in self._actions.items()
        }
        token = visit.environ[front.FORM_TOKEN]
        kept = Kept()
        if refused:
            wrong = wrong_field(refused, visit.form.keys() - {front.TOKEN_FIELD})
            kept = Kept(visit.form, wrong, str(refused.public_message))
        return ActionForms(path, title(resource), token, reasons, visit.path, kept)

    def _reason(self, visit: Visit, resource: dict, action: Action) -> str | None:
        if not visit.ctx.can(action.policy, resource):
            return NOT_ALLOWED
        if action.event is None:
            return None
        machine = self._machine
        status = machine.from_column(resource[machine.column])
        sources = machine[action.event].sources
        if status in sources:
            return None
        return f'The {self._noun} is {_words(status)}; it must be ' + (
            ' or '.join(sorted(map(_words, sources))) + '.'
        )

    def carry_out(self, visit: Visit, resource: dict, name: str) -> typing.Any:
        """Send the request; return the answer of the API; raises Refused."""
        if self._actions[name].is_dangerous:
            confirm(visit, title(resource))
        return self.send(visit, resource, name)

    def send(self, visit: Visit, resource: dict, name: str) -> typing.Any:
        """Send the request of an action that is confirmed already."""
        return visit.api.send(*self._actions[name].request(resource, visit.form))

    def allowed(self, visit: Visit, names: Iterable[str]) -> list[str]:
        """Return those of the actions that policies allow on resources at all."""
        return [one for one in names if visit.ctx.can(self._actions[one].policy)]

    def on_selected(
        self,
        collection: Collection,
        api_path: str,
        key: str,
        show_list: Callable[[Visit, Refused], Answer],
    ) -> Handler:
        """Return the handler of actions on the selected rows of a list."""

        def act_on_selected(visit: Visit) -> Answer:
            try:
                return self._carry_out_selected(visit, collection, api_path, key)
            except Refused as error:
                visit.query = dict(urllib.parse.parse_qsl(visit.form.get(LISTED, '')))
                return show_list(visit, error)

        return act_on_selected

    def _carry_out_selected(
        self, visit: Visit, collection: Collection, api_path: str, key: str
    ) -> Answer:
        """Act on each selected row, and show the outcome for each.

        Raises Refused, and does nothing, unless their number was typed.
        """
        name = visit.form.get('action', '')
        if name not in collection.many:
            raise Refused(400, 'Nothing was done: choose an action.')
        ids = [
            field.removeprefix(SELECTED)
            for field in visit.form
            if field.startswith(SELECTED)
        ]
        if not ids:
            raise Refused(400, f'Nothing was done: select {collection.noun} first.')
        if len(ids) > MOST_SELECTED:
            raise Refused(
                400,
                f'Nothing was done: at most {MOST_SELECTED} {collection.noun} may be '
                'selected at a time.',
            )
        if visit.form.get('confirm', '').strip() != str(len(ids)):
            raise Refused(
                400,
                f'Nothing was done: {len(ids)} {collection.noun} were selected; '
                'type that number to confirm.',
            )
        outcomes = [
            self._outcome(visit, collection, f'{api_path}/', key, name, id)
            for id in ids
        ]
        return visit.page(
            'selected.html',
            collection=collection,
            label=collection.label(name),
            outcomes=outcomes,
            accepted=sum(one.refusal is None for one in outcomes),
        )

    def _outcome(
        self,
        visit: Visit,
        collection: Collection,
        path: str,
        key: str,
        name: str,
        id: str,
    ) -> Outcome:
        shown, page = id, collection.path
        try:
            resource = visit.api.get(path + id_of({'id': id}, 'id'))[key]
            shown, page = title(resource), collection.page_of(resource)
            self.send(visit, resource, name)
        except Refused as error:
            return Outcome(page, shown, error.public_message)
        return Outcome(page, shown, None)


def title(resource: Mapping[str, typing.Any]) -> str:
    """Return the name of a resource, or its id without one."""
    return resource.get('name') or resource['id']


def confirm(visit: Visit, name: str) -> None:
    """Raise Refused unless the name of the resource was typed."""
    if visit.form.get('confirm') != name:
        raise Refused(400, f'Nothing was done: to confirm, type the name {name}.')


_QUOTAS = {'size': 'gigabytes', 'new_size': 'gigabytes'}
"""What a quota calls a field."""


def wrong_field(refused: Refused | None, names: Iterable[str]) -> str | None:
    """Return the field of a form that a refusal is about, if it names one.

    The API names a field by its name in requests, a missing resource in words,
    and a quota by the resource that it limits.
    """
    if refused is None:
        return None
    text = str(refused.public_message).lower()
    spellings: tuple[Callable[[str], str], ...] = (
        str,
        lambda name: name.removesuffix('_id').replace('_', ' '),
        lambda name: _QUOTAS.get(name, name),
    )
    for spell in spellings:
        found = [
            name
            for name in names
            if re.search(rf'\b{re.escape(spell(name))}s?\b', text)
        ]
        if found:
            return max(found, key=len)
    return None


class TypeChoice(typing.NamedTuple):
    """Share types for a form, each once, with its requirements.

    `default` is chosen at first, if there is a default type.
    """

    options: list[tuple[str, str]]
    default: str
    need_network: bool


def types(visit: Visit) -> TypeChoice:
    """Return the share types that the caller may use."""
    found = (visit.api.find('/types') or {'share_types': []})['share_types']
    needing = {
        one['id']
        for one in found
        if one['required_extra_specs'].get('driver_handles_share_servers') in _TRUE
    }
    options = [
        (
            one['id'],
            one['name'] + (' (needs a share network)' if one['id'] in needing else ''),
        )
        for one in found
    ]
    return TypeChoice(options, default_of(found), bool(needing))


def default_of(types: Iterable[Mapping]) -> str:
    """Return the id of the default type, or an empty one without it."""
    return next((one['id'] for one in types if one['is_default']), '')


_TRUE = (True, 'True', 'true')


def choices(found: Mapping | None, key: str, value: str = 'id') -> list[tuple]:
    """Return the options of a list of the API, by name."""
    return [
        (one[value], one['name'] or one['id']) for one in (found or {}).get(key, ())
    ]


def zones(visit: Visit) -> list[tuple]:
    """Return the zones as options; none if there is only one to choose."""
    found = choices(visit.api.find('/availability-zones'), 'availability_zones', 'name')
    return found if len(found) > 1 else []


def pair(text: str) -> tuple[str, str]:
    """Return key and value of metadata written as key=value; raises Refused."""
    key, sign, value = text.partition('=')
    if not sign:
        raise Refused(400, f'metadata: {text} must be key=value.')
    return key.strip(), value.strip()


def number(text: str) -> int | str:
    """Return a number; leave errors in anything else to the API."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if is_number else text


def id_of(form: Form, name: str) -> str:
    """Return an id for a path; raises Refused."""
    found = form.get(name, '')
    if not found.replace('-', '').isalnum() or not found.isascii():
        raise Refused(400, f'{name} is not an id.')
    return found


def on(collection: str, name: str, **fields: Callable[[str], typing.Any]) -> Requested:
    """Return the request of an action of the API with fields of a form."""

    def request(resource: dict, form: Form) -> Request:
        given = {
            field: convert(form[field])
            for field, convert in fields.items()
            if form.get(field)
        }
        path = f'/{collection}/{resource["id"]}/action'
        return 'POST', path, {name: given or None}

    return request


def delete(collection: str) -> Requested:
    """Return the request that deletes a resource."""
    return lambda resource, form: ('DELETE', f'/{collection}/{resource["id"]}', None)


def update(collection: str, key: str) -> Requested:
    """Return the request that sets name and description of a resource."""

    def request(resource: dict, form: Form) -> Request:
        body = {name: form.get(name, '') for name in ('name', 'description')}
        return 'PUT', f'/{collection}/{resource["id"]}', {key: body}

    return request


def reset_status(collection: str, policy: str) -> Action:
    """Return the action that sets the status of a resource."""
    return Action(policy, on(collection, 'reset_status', status=str), is_dangerous=True)


def usual(
    collection: str, key: str, event: str = 'delete', *, has_name: bool = True
) -> dict[str, Action]:
    """Return the actions of most resources: `event` begins the deletion."""
    changes = {'update': Action(f'{key}:update', update(collection, key))}
    return (changes if has_name else {}) | {
        'reset-status': reset_status(collection, f'{key}:reset_status'),
        'delete': Action(f'{key}:delete', delete(collection), event, True),
    }


def _words(status: str | None) -> str:
    return (status or 'without a status').replace('_', ' ')
