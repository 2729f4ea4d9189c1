"""manila-lite-scheduler: place shares on back ends."""

from manila_lite.cmd import registered
from manila_lite.cmd.build.database_metrics import page_of_service
from manila_lite.cmd.build.health import checks_of_scheduler
from manila_lite.cmd.build.scheduler import build_scheduler

COMMAND = registered.Command(
    'manila-lite-scheduler',
    build_scheduler,
    port=lambda conf: conf.monitoring.scheduler_port,
    checks=checks_of_scheduler,
    page=page_of_service,
)

main = COMMAND.run

if __name__ == '__main__':
    main()
