"""A cluster of the previous release is upgraded while clients use it.

The steps are those of upgrade.rst, node by node, and nodes go back. No
request may fail for clients that repeat what the document tells them to.
"""

import collections
from collections.abc import Callable
import pathlib
import re
import shutil
import time
from typing import Any

from manila_lite import release
from manila_lite.share.drivers.dummy import fencing
from tests.cluster import chaos, load
from tests.cluster.cluster import SMALL, Cluster
from tests.cluster.services import Service
from tests.cluster.verbs import BY_DRIVER
from tests.support import previous_release
from tests.support.load import NO_RESPONSE_ERRORS
from tests.support.processes import wait_until
from tests.support.rest_client import RestClient

LATER = frozenset({'back_up', 'restore_backup', 'delete_backup', *load.OF_DATA_SERVICE})
"""What the previous release does not offer."""

LEFT_OUT = (
    # Release 1 takes copied shares for abandoned, see upgrade.rst.
    'migrate_by_copy',
    # The services are stopped and started one by one.
    *('disable_service', 'enable_service'),
)

ORDER = ('api', 'scheduler', 'share')
"""New APIs accept first what no other service knows, so that it waits."""

BACK = ('share1', 'api2')
"""The nodes that go back to the previous release."""

REQUESTS = 10
"""How many are answered between two steps."""

SIZE = SMALL._replace(schedulers=1, data=1)
TIMING = chaos.TIMING._replace(lease=5, service_down_time=10)
"""A busy machine may stop any process for a few seconds."""

PATIENCE = 120.0
"""Seconds for which a client waits, and repeats a request."""

IDEMPOTENT = ('GET', 'PUT', 'DELETE')
CHECKS = {
    'Schema': 'Database schema',
    'Releases': 'Releases of live services',
    'Work': 'Accepted work',
}
_NEXT_RECORD = re.compile(r'^\d{4}-\d\d-\d\d ', re.MULTILINE)
_RESULT = re.compile(r'Check: (.+?) *\|\n\| Result: (\w+)')


class Requests:
    """Which requests of all clients were repeated, and which have failed."""

    def __init__(self) -> None:
        self.repeated: collections.Counter[str] = collections.Counter()
        self.failed: list[tuple[str, str]] = []
        """With the ids of requests."""


class PatientUser(RestClient):
    """Repeats what upgrade.rst tells clients to repeat, and nothing else."""

    requests: Requests

    def request(
        self,
        method: str,
        path: str,
        *args: object,
        timeout: float = PATIENCE,
        **facts: object,
    ) -> object:
        deadline = time.monotonic() + PATIENCE
        while True:
            self.last = None
            try:
                return super().request(method, path, *args, timeout=PATIENCE, **facts)
            except NO_RESPONSE_ERRORS as error:
                reason, pause = type(error).__name__, 1.0
                failure: Exception = error
            except AssertionError as error:
                if self.last.status_code < 500:
                    raise
                reason = f'{self.last.status_code}'
                pause = float(self.last.headers.get('Retry-After', 1))
                failure = error
            if time.monotonic() > deadline or not self._may_repeat(method):
                self._note(f'{method} {path}: {failure}')
                raise failure
            self.requests.repeated[f'{method} {reason}'] += 1
            time.sleep(pause)

    def _note(self, failure: str) -> None:
        headers = {} if self.last is None else self.last.headers
        id = headers.get('x-openstack-request-id', '')
        self.requests.failed.append((id, failure))

    def _may_repeat(self, method: str) -> bool:
        if self.last is None or self.last.status_code in (502, 504):
            return method in IDEMPOTENT
        return self.last.status_code == 503 and 'Retry-After' in self.last.headers


def install(folder: pathlib.Path) -> pathlib.Path:
    """Put the previous release into a folder, and return that.

    Its dummy back ends compare calls with those of this release.
    """
    previous_release.install(folder)
    new = pathlib.Path(fencing.__file__)
    package = pathlib.Path(release.__file__).parent
    shutil.copy(new, folder / previous_release.PACKAGE / new.relative_to(package))
    return folder


class Upgrade:
    """The upgrade of a cluster whose services run the previous release."""

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        say: Callable[[str], None] = lambda text: None,
    ):
        self.cluster = cluster
        self.requests = Requests()
        self.rounds = chaos.Chaos(cluster, seed, rest=self._user)
        self.load = self.rounds.load
        self._all = {
            verb: weight
            for verb, weight in self.load.weights.items()
            if verb not in LEFT_OUT
        }
        self._old = cluster.release
        self._say = say

    def _user(self, project: str = 'project') -> RestClient:
        user = self.cluster.rest(project, kind=PatientUser)
        user.requests = self.requests
        return user

    def run(self) -> list[str]:
        """Go through all steps; return what is wrong after them."""
        self._limit_to_both()
        self.load.start()
        try:
            self.go()
        finally:
            self.load.stop()
        self.load.server_errors.clear()  # these have failed as well
        return [*self.failures(), *self.rounds.settle()]

    def failures(self) -> list[str]:
        """Return the requests that failed, except by a known error."""
        logs = [one.node.log for one in self.cluster.of_kind('api')]
        return [
            failure
            for id, failure in self.requests.failed
            if not any(self._is_mended(log, id) for log in logs)
        ]

    def _is_mended(self, log: str, id: str) -> bool:
        """Whether a request failed by what this release has mended.

        The previous one does not repeat a transaction after error 1467.
        """
        _, found, rest = log.partition(f'failed (request {id})\n')
        traceback = _NEXT_RECORD.split(rest, maxsplit=1)[0]
        return bool(found) and (str(self._old) in traceback and '(1467, ' in traceback)

    def go(self) -> None:
        user = self._user()
        share = user.wait_at_rest(user.create(share_type='default')['id'], PATIENCE)
        assert share['status'] == 'available', share
        self._let_requests_pass()
        self.expand()
        for kind in ORDER:
            if kind == 'share':
                backup = self.ask_for_what_waits(share)
            for service in [*self.cluster.of_kind(kind)]:
                self.replace(service, None)
        self.wait_until_done(backup)
        self.add_data_services()
        self.expect(Releases='Success', Work='Success')
        self.load.weights = self._all
        self._let_requests_pass()
        for name in BACK:
            service = self.cluster.services[name]
            if service.kind == 'api':
                self._limit_to_both()
            self.replace(service, self._old)
            self.expect(Schema='Success', Work='Success')
        for name in BACK:
            self.replace(self.cluster.services[name], None)
        self.load.weights = self._all
        self.expect(Releases='Success', Work='Success')

    @property
    def text(self) -> str:
        return (
            f'{self.load.requested.total()} requests, '
            f'{len(self.failures())} failed, '
            f'{self.requests.repeated.total()} repeated '
            f'{dict(self.requests.repeated)}'
        )

    def _limit_to_both(self) -> None:
        """Let clients request only what both releases offer."""
        self.load.weights = {
            verb: weight for verb, weight in self._all.items() if verb not in LATER
        }

    def _let_requests_pass(self) -> None:
        wanted = self.load.requested.total() + REQUESTS
        wait_until(
            lambda: self.load.requested.total() >= wanted,
            f'{REQUESTS} requests are answered',
            PATIENCE,
        )

    def ask_for_what_waits(self, share: dict[str, Any]) -> str:
        """Request what no share service knows yet; return its id."""
        user = self._user()
        body = {'share_backup': {'share_id': share['id'], **BY_DRIVER}}
        backup = user.request('POST', '/share-backups', body, expect=202)
        self._let_requests_pass()
        self.expect(Work='Warning')
        return backup['share_backup']['id']

    def wait_until_done(self, backup: str) -> None:
        user = self._user()

        def is_available() -> bool:
            shown = user.get(f'/share-backups/{backup}')['share_backup']
            return shown['status'] == 'available'

        wait_until(is_available, 'what has waited is done', PATIENCE)

    def expand(self) -> None:
        """Migrate the schema by the new release, below the old one."""
        self.expect(Schema='Failure')
        code, printed = self._manage('db', 'sync')
        assert code == 0, printed
        self.expect(Schema='Success', Releases='Warning')
        self._let_requests_pass()

    def expect(self, **results: str) -> None:
        """Wait until `status upgrade-check` of this release says so.

        A stopped process counts as live until its heartbeat is old.
        """
        wait_until(
            lambda: self.check().items() >= results.items(),
            f'status upgrade-check: {results}',
            PATIENCE,
            interval=1,
        )

    def check(self) -> dict[str, str]:
        """Return results by the first word of a check that has it."""
        _, printed = self._manage('status', 'upgrade-check')
        found = dict(_RESULT.findall(printed))
        return {name: found[title] for name, title in CHECKS.items()}

    def _manage(self, *words: str) -> tuple[int, str]:
        return next(self.cluster.of_kind('api')).manage(*words)

    def replace(self, service: Service, code: pathlib.Path | None) -> None:
        """Stop a service as its release wants it, and start the other one."""
        began = time.monotonic()
        is_proxied = service.kind == 'api'
        if is_proxied and service.release is not None:
            self.cluster.proxy.drain('api', service.name)
        service.stop()
        assert service.wait(120) == 0, service.node.log[-3000:]
        stopped = time.monotonic()
        service.release = code
        service.start()
        if is_proxied:
            self.cluster.proxy.mend('api', service.name)
        self.cluster.wait_until_ready()
        self._say(
            f'{service.name}: stopped {stopped - began:.1f} s, '
            f'ready {time.monotonic() - stopped:.1f} s'
        )
        self._let_requests_pass()

    def add_data_services(self) -> None:
        """Start the services that the previous release does not have."""
        self.cluster.release = None
        for name, kind in self.cluster.kinds.items():
            if kind == 'data':
                self.cluster.add(name).start()
        self.cluster.wait_until_ready()
