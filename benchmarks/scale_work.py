"""Work of a large deployment: placement, and one work from claim to end."""

from collections.abc import Iterator
import contextlib
import pathlib
import statistics
import time

import sqlalchemy as sa

from benchmarks.verdict import Verdict
from manila_lite.db.models import engine, shares
from manila_lite.db.session import Database, Session
from manila_lite.rpc.scheduler import TOPIC as SCHEDULER_QUEUE
from tests.support import databases, mass_rows
from tests.support.service_process import CTX, ServiceProcess

PLACED, TIMEOUT = 300, 120.0
EXTENDED, TURNS = 5, 30
FEW = mass_rows.Sizes(
    shares=1000,
    rules_of_share=5,
    snapshots=200,
    journal=1000,
    messages=100,
    services=1,
    pools=1,
    projects=1,
    networks=1,
    groups=1,
    servers=1,
    migrations=1,
    decisions=100,
    waiting=1,
)

_WORK = engine.Work.__table__
_SHARE = shares.Share.__table__
_INSTANCE = shares.ShareInstance.__table__


def build_node(folder: pathlib.Path, url: str, service_host: str) -> ServiceProcess:
    """Build the process of a service whose shares were inserted."""
    folder.mkdir()
    host, _, backend = service_host.partition('@')
    return ServiceProcess(
        folder,
        url,
        fill=False,
        backends=[backend],
        capacity=10_000_000,
        default=f'host = {host}\n'
        # Its shares can be placed by it.
        f'storage_availability_zone = {host}\n'
        f'default_share_type = {mass_rows.TYPE}\n',
        # So that there is a pass over replicas.
        section='dummy_driver_replication_type = readable\n'
        'replication_domain = replicas\n'
        f'dummy_driver_replication_path = {folder}/replicas\n',
    )


# Claim to end


def measure_claims(
    verdict: Verdict, db: Database, sizes: mass_rows.Sizes, folder: pathlib.Path
) -> None:
    """Compare an extension with that on a database of few rows."""
    with contextlib.ExitStack() as stack:
        few_url = stack.enter_context(databases.temporary_database(db.dialect, folder))
        databases.create_tables(few_url)
        few_db = Database(few_url)
        stack.callback(few_db.dispose)
        mass_rows.insert(few_db, FEW)
        few, many = (
            stack.enter_context(_with_shares(folder / name, url, host))
            for name, url, host in (
                ('few', few_url, FEW.service_host(0)),
                ('many', db.url, sizes.service_host(2)),
            )
        )
        taken: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(TURNS):
            for is_large, process in ((True, many), (False, few)):
                taken[is_large] += _extend(*process, turn)
        stack.callback(db.write, _remove_shares)
    many_ms, few_ms = (_quick(taken[is_large]) for is_large in (True, False))
    verdict.record(
        f'{db.dialect}: one work from claim to end, to {FEW.shares} shares',
        many_ms / few_ms,
        'times',
        at_most=1.3,
        many_ms=round(many_ms, 2),
        few_ms=round(few_ms, 2),
    )


@contextlib.contextmanager
def _with_shares(
    folder: pathlib.Path, url: str, host: str
) -> Iterator[tuple[ServiceProcess, list[str]]]:
    """Yield a process and the shares that it has created."""
    node = build_node(folder, url, host)
    try:
        node.register()
        node.db.write(_cancel_ensuring, host)
        ids = [node.create(availability_zone=node.conf.host) for _ in range(EXTENDED)]
        deadline = time.monotonic() + TIMEOUT
        while {node.status(id) for id in ids} != {'available'}:
            if time.monotonic() > deadline:
                raise RuntimeError(f'not created: {[node.status(id) for id in ids]}')
            node.run()  # some of it may be retried later
            time.sleep(0.05)
        yield node, ids
    finally:
        node.stop()


def _cancel_ensuring(session: Session, host: str) -> None:
    """The driver does not know the shares that were inserted."""
    session.run(
        sa.delete(_WORK).where(
            _WORK.c.queue == host, _WORK.c.kind == 'ensuring.ensure_shares'
        )
    )


def _quick(taken: list[float]) -> float:
    """Return the first decile: other load of the machine only adds."""
    return statistics.quantiles(taken, n=10)[0]


def _extend(node: ServiceProcess, ids: list[str], turn: int) -> list[float]:
    """Return the milliseconds of the work to extend each share."""
    runner = node.share.backends[0].runner
    taken = []
    for id in ids:
        # Not by way of a scheduler.
        node.operations.extend(CTX, node.target(id), 2 + turn, force=True)
        began = time.perf_counter()
        runner.step()
        taken.append((time.perf_counter() - began) * 1e3)
        assert node.outcome(id) == ('available', 2 + turn)
    return taken


# Placement


def measure_placement(verdict: Verdict, db: Database, folder: pathlib.Path) -> None:
    """Measure how many shares a scheduler places, on all pools."""
    node = build_node(folder / 'placement', db.url, 'scheduler@none')
    try:
        node.scheduler.register()
        for _ in range(PLACED):
            node.create()
        (runner,) = node.scheduler.runners
        began, processor = time.perf_counter(), time.process_time()
        runner.start()
        while waiting := db.read(_count_unplaced):
            if time.perf_counter() - began > TIMEOUT:
                break
            time.sleep(0.01)
        seconds = time.perf_counter() - began
        processor = time.process_time() - processor
        runner.stop(TIMEOUT)
        placed = db.read(_count_placed)
    finally:
        node.stop()
        db.write(_remove_shares)
    verdict.record(
        f'{db.dialect}: placement by one scheduler',
        (PLACED - waiting) / seconds,
        'shares a second',
        at_least=100,
        placed=placed,
        processor_ms_each=round(processor / PLACED * 1e3, 2),
    )


def _count_unplaced(session: Session) -> int:
    return session.value(
        sa.select(sa.func.count()).where(
            _WORK.c.state.in_(['queued', 'running']), _WORK.c.queue == SCHEDULER_QUEUE
        )
    )


_OF_US = (
    sa.select(_SHARE.c.id)
    .where(_SHARE.c.project_id == CTX.project_id)
    .scalar_subquery()
)


def _count_placed(session: Session) -> int:
    return session.value(
        sa.select(sa.func.count()).where(
            _INSTANCE.c.share_id.in_(_OF_US), _INSTANCE.c.host.is_not(None)
        )
    )


def _remove_shares(session: Session) -> None:
    """Delete the shares of this benchmark and their work."""
    ids = [
        row.id
        for row in session.rows(
            sa.select(_INSTANCE.c.id).where(_INSTANCE.c.share_id.in_(_OF_US))
        )
    ]
    session.run(sa.delete(_WORK).where(_WORK.c.resource_id.in_(ids)))
    session.run(sa.delete(_INSTANCE).where(_INSTANCE.c.id.in_(ids)))
    session.run(sa.delete(_SHARE).where(_SHARE.c.project_id == CTX.project_id))
