"""One request to a page: its caller, its form, and its answer."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
import typing
import urllib.parse

from manila_lite import exception
from manila_lite.api import wsgi
from manila_lite.api.auth.caller import App
from manila_lite.api.services import ApiServices
from manila_lite.api.ui import front, html
from manila_lite.api.ui.api_client import ApiClient, Refused
from manila_lite.context import RequestContext
from manila_lite.db.rows import UsageTotalRow

CAPACITY_POLICY = 'scheduler_stats:pools:detail'
MIGRATIONS_POLICY = 'share_server:share_server_migration_get_progress'
SHARE_MIGRATIONS_POLICY = 'share:migration_get_progress'
SERVERS_POLICY = 'share_server:index'
_ACCEPTED = {
    'create': 'The share is being created.',
    'extend': 'The share is being extended.',
    'shrink': 'The share is being shrunk.',
    'allow': 'The access rule is being applied.',
    'deny': 'The access rule is being removed.',
    'snapshot': 'The snapshot is being taken.',
    'delete-snapshot': 'The snapshot is being deleted.',
    'copy-snapshot': 'The share is being created from the snapshot.',
    'revert': 'The share is being put back to its snapshot.',
    'delete': 'The share is being deleted.',
    'force-delete': 'The share is being deleted by force.',
    'reset-status': 'The status has been set.',
    'migrate': 'The migration is requested.',
    'complete-migration': 'The migration is being completed.',
    'cancel-migration': 'The migration is being cancelled.',
    'reset-migration': 'The state of the migration has been set.',
    'replicate': 'The replica is being created.',
    'promote': 'The replica is being promoted.',
    'resync': 'The replica is being synchronized.',
    'delete-replica': 'The replica is being deleted.',
    'create-group': 'The share group is being created.',
    'copy-group': 'The share group is being created from the snapshot.',
    'delete-group': 'The share group is being deleted.',
    'snapshot-group': 'The snapshot of the share group is being taken.',
    'delete-group-snapshot': 'The snapshot is being deleted.',
    'reset-group-snapshot': 'The status of the snapshot has been set.',
    'create-network': 'The share network has been created.',
    'delete-network': 'The share network is being deleted.',
    'add-subnet': 'The subnet is being added.',
    'delete-subnet': 'The subnet is being deleted.',
    'add-security-service': 'The security service is being added.',
    'replace-security-service': 'The security service is being replaced.',
    'remove-security-service': 'The security service has been removed.',
    'create-security-service': 'The security service has been created.',
    'delete-security-service': 'The security service has been deleted.',
    'update': 'Name and description have been set.',
    'delete-server': 'The share server is being deleted.',
    'pass': 'A pass of recovery is requested.',
    'rescue': 'The rescue is requested.',
}
"""What a page says after an action that the API has accepted."""

_NAVIGATION = {
    'Project': (
        ('/ui/', 'Overview', None),
        ('/ui/shares', 'Shares', 'share:get_all'),
        ('/ui/groups', 'Groups', 'share_group:get_all'),
        ('/ui/networks', 'Networks', 'share_network:index'),
        ('/ui/quotas', 'Quotas', 'quota_set:show'),
    ),
    'Work': (
        ('/ui/in-flight', 'In flight', 'recovery:in_flight'),
        ('/ui/migrations', 'Migrations', MIGRATIONS_POLICY),
        ('/ui/recovery', 'Recovery', 'recovery:log'),
    ),
    'Cloud': (
        ('/ui/services', 'Services', 'service:index'),
        ('/ui/servers', 'Servers', SERVERS_POLICY),
        ('/ui/capacity', 'Capacity', CAPACITY_POLICY),
        ('/ui/charts', 'Charts', CAPACITY_POLICY),
    ),
}
"""Path, title, and the policy of those who see it, in groups."""


@dataclasses.dataclass
class Totals:
    """The figures of all projects that a process read last, for the overview."""

    rows: Sequence[UsageTotalRow] | None = None
    read_at: typing.Any = None


class Visit:
    """A request to a page; `page` and `see` return what it is answered.

    `names` are the parts of its path that vary, `form` what was posted.
    """

    names: Mapping[str, str] = {}

    def __init__(
        self,
        environ: dict,
        api: App,
        services: ApiServices,
        totals: Totals | None = None,
    ):
        self.environ = environ
        self.totals = totals or Totals()
        self.path: str = environ['PATH_INFO']
        self.form: Mapping[str, str] = environ.get(front.FORM, {})
        self.services = services
        self.api = ApiClient(api, environ)

    @property
    def ctx(self) -> RequestContext:
        return self.environ[wsgi.CONTEXT]

    @functools.cached_property
    def query(self) -> dict[str, str]:
        return wsgi.Request(self.environ).query

    @functools.cached_property
    def now(self) -> typing.Any:
        return self.services.db.utcnow()

    @property
    def is_admin(self) -> bool:
        """Whether the caller sees the rows of all projects in flight."""
        return self.ctx.can('recovery:in_flight')

    @property
    def project_id(self) -> str | None:
        """The project whose rows the caller sees; None for all."""
        return None if self.is_admin else str(self.ctx.project_id)

    def number(self, name: str) -> int:
        """Return a number in the query; 0 without a usable one."""
        text = self.query.get(name, '')
        is_number = text.isascii() and text.isdecimal() and len(text) < 10
        return int(text) if is_number else 0

    def authorize(self, rule: str) -> None:
        """Raise Forbidden unless a policy allows it."""
        if not self.ctx.can(rule):
            raise exception.AccessDenied(rule=rule)

    def page(
        self, template: str, refused: Refused | None = None, /, **values: object
    ) -> 'Answer':
        """Show a page, and why an action was refused if one was."""
        code, message = (
            (refused.code, refused.public_message) if refused else (200, None)
        )
        return Answer(code, template, values | {'refused': message})

    def see(self, path: str, **query: str) -> 'Answer':
        """Send the browser to another page."""
        text = urllib.parse.urlencode(query)
        return Answer(303, path + (f'?{text}' if text else ''), {})

    def render(
        self, answer: 'Answer', start_response: typing.Callable
    ) -> Iterable[bytes]:
        if answer.status == 303:
            return html.redirect(start_response, answer.template)
        return html.send(
            start_response,
            answer.status,
            answer.template,
            visit=self,
            now=self.now,
            notice=_ACCEPTED.get(self.query.get('done', '')),
            form=self.form,
            form_token=self.environ[front.FORM_TOKEN],
            navigation=self._navigation(),
            **answer.values,
        )

    def _navigation(self) -> dict[str, list[tuple[str, str]]]:
        """Return path and title of the pages that the user sees, in groups."""
        found = {
            group: [
                (path, title)
                for path, title, rule in pages
                if rule is None or self.ctx.can(rule)
            ]
            for group, pages in _NAVIGATION.items()
        }
        return {group: pages for group, pages in found.items() if pages}


class Answer(typing.NamedTuple):
    """A template with its values, or with status 303 another address."""

    status: int
    template: str
    values: Mapping[str, typing.Any]


Handler = typing.Callable[[Visit], Answer]
