# The functions of all roles.
# shellcheck shell=bash
# shellcheck source=deploy/lib/common.sh
source "$DEPLOY/lib/common.sh"
# shellcheck source=deploy/lib/quoting.sh
source "$DEPLOY/lib/quoting.sh"
# shellcheck source=deploy/lib/certificates.sh
source "$DEPLOY/lib/certificates.sh"
# shellcheck source=deploy/lib/backups.sh
source "$DEPLOY/lib/backups.sh"
# shellcheck source=deploy/lib/configuration.sh
source "$DEPLOY/lib/configuration.sh"
# shellcheck source=deploy/lib/servers.sh
source "$DEPLOY/lib/servers.sh"
# shellcheck source=deploy/lib/identity.sh
source "$DEPLOY/lib/identity.sh"
# shellcheck source=deploy/lib/program.sh
source "$DEPLOY/lib/program.sh"
# shellcheck source=deploy/lib/units.sh
source "$DEPLOY/lib/units.sh"
# shellcheck source=deploy/lib/gateway.sh
source "$DEPLOY/lib/gateway.sh"
# shellcheck source=deploy/lib/service.sh
source "$DEPLOY/lib/service.sh"
