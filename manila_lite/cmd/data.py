"""manila-lite-data: copy the content of shares."""

from manila_lite.cmd import registered
from manila_lite.cmd.build.data import build_data
from manila_lite.cmd.build.database_metrics import page_of_process
from manila_lite.cmd.build.health import checks_of_data_process

COMMAND = registered.Command(
    'manila-lite-data',
    build_data,
    port=lambda conf: conf.monitoring.data_port,
    checks=checks_of_data_process,
    page=page_of_process,
)

main = COMMAND.run

if __name__ == '__main__':
    main()
