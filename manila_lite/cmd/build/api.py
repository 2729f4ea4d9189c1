"""Build the API: operations, controllers and the WSGI application."""

from collections.abc import Callable, Iterable, Mapping
import typing

from oslo_config import cfg

from manila_lite.api.app import App, build_app
from manila_lite.api.health import Check
from manila_lite.api.services import ApiServices
from manila_lite.cmd.build.database_metrics import page_of_service
from manila_lite.cmd.build.health import DatabaseCheck, checks_of_others
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registry import Registry
from manila_lite.cmd.driver_thread import run_in_native_thread
from manila_lite.db import read_limit
from manila_lite.policies.enforcer import Enforcer
from manila_lite.scheduler.filters.capabilities import mismatch_reason
from manila_lite.scheduler.pools import Capabilities, Pool


def build_api(
    process: Process,
    *,
    auth: Callable[[App], App] | None = None,
    checks: Mapping[str, Check] | None = None,
    enforcer: Enforcer | None = None,
) -> tuple[App, ApiServices]:
    """Build the WSGI application and the services behind it.

    `checks` are those of other services in this process.
    """
    conf = process.conf
    enforcer = enforcer or Enforcer(conf)
    found = Registry(process, {Enforcer: enforcer}).get(
        ApiServices,
        admin_only_metadata=frozenset(conf.admin_only_metadata),
        admin_only_export_metadata=frozenset(conf.admin_only_el_metadata),
        pool_matches=pool_matches,
        describe=describe,
    )
    required: dict[str, Check] = {
        'database': DatabaseCheck(process.db),
        'process': lambda: 'is stopping' if process.stopping.is_set() else None,
        **(checks or {}),
    }
    # An API without them still accepts requests, and answers reads.
    others = {} if checks else checks_of_others(process)
    app = build_app(
        conf,
        found,
        enforcer,
        auth,
        run=run_in_native_thread,
        checks=required | others,
        required=[*required, *conf.healthcheck_required],
        metrics=(page_of_service(process) if conf.monitoring.api_metrics else None),
        ui=conf.ui.enabled,
    )
    return limit_reads(app, conf.read_time_limit), found


def limit_reads(app: App, seconds: float) -> App:
    """Limit the time that the reads of each request may take."""

    def limited(environ: dict, start_response: Callable) -> Iterable[bytes]:
        with read_limit.limit_reads(seconds):
            return app(environ, start_response)

    return limited


def describe(conf: cfg.ConfigOpts, minor: int) -> bytes:
    """Return the description of a minor version of the API."""
    # Imported when it is first asked for, to keep idle services small.
    from manila_lite.api.description import operations

    return operations.encoded(conf, minor)


def pool_matches(
    capabilities: typing.Mapping[str, typing.Any], extra_specs: typing.Mapping[str, str]
) -> bool:
    """Whether a pool offers everything that extra specs demand."""
    pool = Pool(
        host='',
        capabilities=Capabilities(capabilities),
        zone=None,
        service_up=True,
        service_enabled=True,
        total_gb=None,
        free_gb=None,
        allocated_gb=0,
        pending_gb=0,
    )
    return not any(
        mismatch_reason(pool, key, wanted) for key, wanted in extra_specs.items()
    )
