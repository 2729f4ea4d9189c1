# The DevStack plug-in of manila_lite: DevStack sources it with the name of a
# phase. What the service gets comes from the functions of deploy, what
# belongs to the cloud from those of DevStack.
# shellcheck shell=bash

MANILA_LITE_XTRACE=$(set +o | grep xtrace)
set +o xtrace

MANILA_LITE_CONF=$MANILA_LITE_CONF_DIR/manila_lite.conf
MANILA_LITE_SERVICES=(api scheduler share data)

# with_deploy COMMAND...: run a function of deploy. It gets a shell of its
# own, because some names, such as `die`, have another meaning in DevStack.
with_deploy() {
    (
        set -euo pipefail
        DEPLOY=$MANILA_LITE_DIR/deploy
        # shellcheck source=deploy/lib/all.sh
        source "$DEPLOY/lib/all.sh"
        # The phase pre-install has installed them.
        # shellcheck disable=SC2329
        install_packages() {
            :
        }
        LOCAL_CONF=/dev/null
        NODE_IP=$HOST_IP
        # The servers are those of DevStack.
        INTERNAL_TLS=no
        NODE_NAME=$(uname -n)
        API_LOCAL_PORT=$MANILA_LITE_PORT
        DATABASE_URL=$MANILA_LITE_DATABASE_URL
        TRANSPORT_URL=$MANILA_LITE_TRANSPORT_URL
        LOCKS_URL=file://$MANILA_LITE_STATE/locks
        AUTH=keystone
        SHARE_TYPE=$MANILA_LITE_SHARE_TYPE
        BACKENDS=$MANILA_LITE_BACKENDS
        PROTOCOLS=$MANILA_LITE_PROTOCOLS
        EXTRA_CONF=$MANILA_LITE_EXTRA_CONF
        read_variables
        STATE=$MANILA_LITE_STATE
        VENV=$MANILA_LITE_VENV
        RELEASES=$MANILA_LITE_VENV-releases
        local name variable
        for name in $BACKENDS; do
            variable=MANILA_LITE_BACKEND_$name
            printf -v "BACKEND_$name" '%s' \
                "${!variable:-$(plain_directories "$name")}"
        done
        "$@"
    )
}

# plain_directories NAME: as the default of deploy, but where no root is
# needed.
plain_directories() {
    # shellcheck disable=SC2031
    backend_options "$1" \
        | sed "s|^local_root *=.*|local_root = $STATE/shares/$1|"
}

# cloud_conf: print the configuration. Services write to the journal, as all
# of DevStack do.
cloud_conf() {
    service_conf share | sed '/^log_dir = /d'
}

# use_cloud_servers: the URLs of the database and the broker of DevStack.
use_cloud_servers() {
    local url
    url=$(database_connection_url manila_lite)
    # It counts statements, by a module that this environment does not have.
    url=${url%&plugin=dbcounter}
    MANILA_LITE_DATABASE_URL=${url/#postgresql:/postgresql+psycopg2:}
    MANILA_LITE_TRANSPORT_URL=$(get_transport_url)
}

install_into_cloud() {
    install_program
    switch_program
}

install_manila_lite() {
    if is_service_enabled mysql \
            && [[ $(mysql --version) != *MariaDB* ]]; then
        die $LINENO 'manila_lite runs on MariaDB and PostgreSQL, not on' \
            'MySQL: disable_service mysql; enable_service postgresql'
    fi
    mkdir -p "$MANILA_LITE_STATE"
    use_cloud_servers
    # Not the environment of the other services: its versions of libraries
    # are fixed by DevStack.
    with_deploy install_into_cloud
    pip_install python-manilaclient
}

configure_manila_lite() {
    local root
    sudo install -d -o "$STACK_USER" -m 750 "$MANILA_LITE_CONF_DIR"
    use_cloud_servers
    with_deploy cloud_conf > "$MANILA_LITE_CONF"
    chmod 600 "$MANILA_LITE_CONF"
    iniset "$MANILA_LITE_CONF" DEFAULT debug "$ENABLE_DEBUG_LOG_LEVEL"
    configure_keystone_authtoken_middleware "$MANILA_LITE_CONF" manila_lite
    for root in $(with_deploy local_roots); do
        mkdir -p "$root"
    done
}

init_manila_lite() {
    recreate_database manila_lite
    "$MANILA_LITE_VENV/bin/manila-lite-manage" db sync \
        --config-file "$MANILA_LITE_CONF"
}

# The user of the service, and its entries in the catalog.
create_manila_lite_accounts() {
    local url=http://$SERVICE_HOST:$MANILA_LITE_PORT/v2
    create_service_user manila_lite
    get_or_create_service manila_lite shared-file-system \
        'Shared file systems'
    get_or_create_endpoint shared-file-system "$REGION_NAME" "$url"
    get_or_create_service manila_lite_v2 sharev2 'Shared file systems'
    get_or_create_endpoint sharev2 "$REGION_NAME" "$url"
}

start_manila_lite() {
    local name command
    for name in "${MANILA_LITE_SERVICES[@]}"; do
        command="$MANILA_LITE_VENV/bin/manila-lite-$name"
        # It starts those that are enabled.
        run_process "manila-lite-$name" \
            "$command --config-file $MANILA_LITE_CONF"
    done
}

create_manila_lite_share_type() {
    wait_for_service "$SERVICE_TIMEOUT" \
        "http://$SERVICE_HOST:$MANILA_LITE_PORT/healthcheck"
    if ! openstack share type show "$MANILA_LITE_SHARE_TYPE" \
            > /dev/null 2>&1; then
        openstack share type create "$MANILA_LITE_SHARE_TYPE" False \
            --snapshot-support True
    fi
}

configure_manila_lite_tempest() {
    local latest
    latest=$("$MANILA_LITE_VENV/bin/python" - <<'END'
from manila_lite.api import versions
print(versions.text(versions.MAX))
END
    )
    iniset "$TEMPEST_CONFIG" service_available manila True
    iniset "$TEMPEST_CONFIG" share max_api_microversion "$latest"
    iniset "$TEMPEST_CONFIG" share default_share_type_name \
        "$MANILA_LITE_SHARE_TYPE"
    iniset "$TEMPEST_CONFIG" share enable_protocols \
        "$(tr '[:upper:]' '[:lower:]' <<< "$MANILA_LITE_PROTOCOLS")"
    iniset "$TEMPEST_CONFIG" share backend_names \
        "${MANILA_LITE_BACKENDS// /,}"
}

stop_manila_lite() {
    local name
    for name in "${MANILA_LITE_SERVICES[@]}"; do
        stop_process "manila-lite-$name"
    done
}

clean_manila_lite() {
    sudo rm -rf "$MANILA_LITE_CONF_DIR" "$MANILA_LITE_STATE" \
        "$MANILA_LITE_VENV" "$MANILA_LITE_VENV-releases"
}

case "$1 ${2:-}" in
    'stack pre-install') install_package python3-venv logrotate curl ;;
    'stack install') install_manila_lite ;;
    'stack post-config')
        configure_manila_lite
        init_manila_lite
        create_manila_lite_accounts
        ;;
    'stack extra')
        start_manila_lite
        create_manila_lite_share_type
        ;;
    'stack test-config')
        if is_service_enabled tempest; then
            configure_manila_lite_tempest
        fi
        ;;
    'unstack '*) stop_manila_lite ;;
    'clean '*) clean_manila_lite ;;
esac

$MANILA_LITE_XTRACE
