# The service itself: user, configuration, sign-in, proxy, rows.
# shellcheck shell=bash disable=SC2153

PROXY_CONF=/etc/haproxy/manila_lite.cfg
PROXY_OPTIONS='EXTRAOPTS="-S /run/haproxy-master.sock'
PROXY_OPTIONS+=" -f $PROXY_CONF\""

add_user() {
    if ! getent passwd manila > /dev/null; then
        change 'added the user manila' \
            useradd --system --home-dir "$STATE" --no-create-home \
            --shell /usr/sbin/nologin manila
    fi
    put_directory root:manila 750 "$ETC"
    put_directory manila:manila 750 "$STATE"
    if ! checks; then
        # With --check it is another one.
        put_directory manila:manila 750 "$LOGS"
    fi
    put_local_conf
}

# configure: write manila_lite.conf for the roles of this node.
configure() {
    if has_role controller; then
        put_cacert
    fi
    put_ca
    put_conf
    put_file root:root 644 /etc/logrotate.d/manila-lite \
        < "$DEPLOY/../etc/manila_lite/logrotate.conf"
}

# put_conf: write manila_lite.conf, and beside it what only root may read. Services
# whose unit files do not take credentials find all of it in manila_lite.conf.
put_conf() {
    local roles=() role text
    mapfile -t roles < "$ROLES"
    put_directory root:root 700 "$CREDENTIALS"
    for role in "${roles[@]}"; do
        if [[ $role != gateway ]]; then
            text=$(secret_conf "$role")
            put_file root:root 600 "$CREDENTIALS/$role.conf" <<< "$text"
        fi
    done
    text=$(manage_conf)
    put_file root:root 600 "$MANAGE_CONF" <<< "$text"
    if needs_old_conf; then
        if has_role controller && ! uses_keystone; then
            put_file manila:manila 600 "$TOKEN_KEY_FILE" <<< "$TOKEN_KEY"
        fi
        text=$(service_conf "${roles[@]}")
    else
        text=$(plain_conf "${roles[@]}"; extra_conf)
    fi
    put_file root:manila 640 "$CONF" <<< "$text"
    if ! needs_old_conf; then
        delete_file "$TOKEN_KEY_FILE"
    fi
}

# manage_conf: print what manila-lite-manage reads after manila_lite.conf.
manage_conf() {
    if has_role controller; then
        secret_conf controller
    else
        secret_conf share
    fi
    extra_conf
}

# needs_old_conf: whether a unit file takes no credentials.
needs_old_conf() {
    local name
    for name in "${OUR_UNITS[@]}"; do
        if [[ $name != "$GATEWAY_UNIT" && -e $UNITS/$name.service ]] \
                && ! grep -q '^LoadCredential=' "$UNITS/$name.service"; then
            return 0
        fi
    done
    return 1
}

# put_cacert: copy the certificates of TLS_CACERT to where the service, which
# cannot read every directory, and the client find them.
put_cacert() {
    if [[ -z $TLS_CACERT ]]; then
        delete_file "$CACERT"
        return
    fi
    check_authorities TLS_CACERT
    put_file root:manila 644 "$CACERT" < "$TLS_CACERT"
}

# sync_schema: migrate the database, unless it has the schema of the release.
sync_schema() {
    local code=0
    if checks; then
        check_schema
        return
    fi
    manage_schema check > /dev/null 2>&1 || code=$?
    case $code in
        0) ;;
        3)
            prepare_migration
            manage_schema sync
            changed 'migrated the database'
            ;;
        *) manage_schema check ;;
    esac
}

# check_schema: report a migration. The program that is not installed yet has no
# other way to say so, and other controllers wait for the first one.
check_schema() {
    local found
    is_first_controller || return 0
    found=$(manage_schema version)
    if [[ $found == none || $found < $(newest_schema) ]]; then
        prepare_migration
        changed 'migrated the database'
    fi
}

# prepare_migration: make a backup of what may be lost.
prepare_migration() {
    if [[ $OWN_DATABASE != yes && -n $BACKUP_COMMAND ]]; then
        change 'made a backup by BACKUP_COMMAND' run_backup_command
    elif [[ $OWN_DATABASE != yes ]]; then
        echo 'The database is not backed up here, as DATABASE_URL names it.'
    elif ! is_first_controller; then
        die "run deploy/controller on $FIRST_CONTROLLER first, which migrates the" \
            'database after a backup'
    elif has_schema manila; then
        back_up before-migration
    fi
}

run_backup_command() {
    bash -c "$BACKUP_COMMAND" \
        || die 'BACKUP_COMMAND has failed, so nothing is migrated'
}

# manage_schema VERB: run manila-lite-manage db with the account of migrations,
# which no service has.
manage_schema() {
    manage_with <(
        cat "$MANAGE_CONF"
        printf '[database]\nconnection = %s\n' \
            "$(quote_option "$MIGRATION_DATABASE_URL")"
    ) db "$1"
}

# set_up_sign_in: the administrator, and what the API checks callers with.
set_up_sign_in() {
    if uses_keystone; then
        install_packages memcached
        start_unit memcached
        set_up_keystone
        register_service
    else
        set_up_http_basic
    fi
    put_file root:root 600 "$ETC/admin-openrc" <<< "$(admin_openrc)"
}

# set_up_http_basic: the file of users.
set_up_http_basic() {
    # Where the key was before; controllers share that of the secrets.
    delete_file "$STATE/token_key"
    if [[ ! -e $STATE/users ]] \
            || ! prints "^$ADMIN_USER " manage user list; then
        change "added the user $ADMIN_USER" \
            manage user add "$ADMIN_USER" --user-id "$ADMIN_USER" \
            --project "$ADMIN_PROJECT" --role admin <<< "$ADMIN_PASSWORD"
    elif [[ -n $ADMIN_PASSWORD ]] && ! admin_is_known; then
        # The secrets are newer than the file, or the password was changed.
        change "set the password of $ADMIN_USER" \
            manage user passwd "$ADMIN_USER" <<< "$ADMIN_PASSWORD"
    fi
}

# admin_is_known: whether the file of users has the password of the
# administrator.
admin_is_known() {
    runuser -u manila -- "$(program)/bin/python" -I -c '
import sys
from manila_lite.api.auth import users
user = users.read(sys.argv[1]).get(sys.argv[2])
password = sys.stdin.buffer.read().removesuffix(b"\n")
sys.exit(not users.verify_password(user, password))' \
        "$STATE/users" "$ADMIN_USER" <<< "$ADMIN_PASSWORD"
}

api_url() {
    if [[ -n $TLS_CERTIFICATE ]]; then
        echo "https://$API_ADDRESS:$API_PORT"
    else
        echo "http://$API_ADDRESS:$API_PORT"
    fi
}

# set_up_proxy: HAProxy with a file of its own beside that of Debian.
set_up_proxy() {
    install_packages haproxy
    renew_certificates
    local text
    text=$(proxy_conf "${PROXY_LISTEN:-$API_ADDRESS}")
    check_proxy_conf "$text"
    put_file root:root 640 "$PROXY_CONF" <<< "$text"
    for_unit haproxy put_line /etc/default/haproxy "$PROXY_OPTIONS"
    # The listener needs no address, but a name may not be resolved yet.
    put_boot_order haproxy try_until_started
    run_proxy "$text"
}

# check_proxy_conf TEXT: stop if HAProxy cannot read it.
check_proxy_conf() {
    local file found code=0
    file=$(mktemp)
    printf '%s\n' "$1" > "$file"
    found=$(haproxy -c -f /etc/haproxy/haproxy.cfg -f "$file" 2>&1) || code=$?
    rm "$file"
    if [[ $code != 0 ]]; then
        die "$PROXY_CONF is not changed, as HAProxy refuses: $found"
    fi
}

# run_proxy TEXT: let HAProxy read its configuration again if it has read
# another one. Connections then go on; new options need a restart.
run_proxy() {
    if unit_is_on haproxy && was_started_with haproxy "$1"; then
        return
    fi
    if ! systemctl --quiet is-active haproxy; then
        start_unit haproxy
    elif was_started_with haproxy restart; then
        restart_unit haproxy
    else
        change 'reloaded haproxy' systemctl reload haproxy
    fi
    start_unit haproxy
    note_start haproxy "$1"
}

delete_proxy() {
    # The file is removed last, as it shows that this is not done.
    if [[ ! -e $PROXY_CONF ]]; then
        return
    fi
    delete_boot_order haproxy
    delete_line /etc/default/haproxy "$PROXY_OPTIONS"
    if systemctl --quiet is-active haproxy; then
        restart_unit haproxy
    fi
    delete_file "$PROXY_CONF"
}

# call_api ARGUMENT...: curl, as the administrator. The password goes through
# a pipe, not through the arguments.
call_api() {
    local trusted=() code=0
    if [[ -n $TLS_CACERT ]]; then
        trusted=(--cacert "$CACERT")
    fi
    curl --silent --show-error --fail --max-time 60 --retry 30 \
        --retry-connrefused --retry-delay 1 "${trusted[@]}" \
        --header 'X-OpenStack-Manila-API-Version: 2.65' \
        --config <(credentials) "$@" || code=$?
    # The code of curl if it cannot verify the certificate of the server.
    if [[ $code == 60 ]]; then
        die 'TLS_CERTIFICATE must be valid for API_ADDRESS and issued by a' \
            'CA of the system, or by the one that TLS_CACERT names'
    fi
    return "$code"
}

# credentials: print how curl signs in.
credentials() {
    if uses_keystone; then
        printf 'header = "X-Auth-Token: %s"\n' "$(identity token)"
    else
        printf 'user = %s\n' "$(quote_word "$ADMIN_USER:$ADMIN_PASSWORD")"
    fi
}

# first_share_type: the one that local.conf names, if there is none.
first_share_type() {
    local found spec specs=()
    # That of an existing Keystone may be unknown here.
    if [[ -z $ADMIN_PASSWORD ]]; then
        return 0
    fi
    found=$(call_api "$(api_url)/v2/types?is_public=all") || {
        checks || exit
        echo 'The share type is not looked at, as the API gave no answer.'
        return 0
    }
    if grep -q "\"name\": *\"$SHARE_TYPE\"" <<< "$found"; then
        return
    fi
    for spec in $SHARE_TYPE_SPECS; do
        specs+=("\"${spec%%=*}\": \"${spec#*=}\"")
    done
    change "made the share type $SHARE_TYPE" call_api --output /dev/null \
        --header 'Content-Type: application/json' \
        --data @- "$(api_url)/v2/types" <<END
{"share_type": {"name": "$SHARE_TYPE",
                "extra_specs": {$(IFS=,; echo "${specs[*]}")}}}
END
}

# put_storage: directories of the driver local, which its service owns.
put_storage() {
    local root
    for root in $(local_roots); do
        # One that exists may be a mounted file system: only its owner counts.
        if [[ ! -d $root || $(stat -c %U "$root") != manila ]]; then
            put_directory manila:manila 755 "$root"
        fi
    done
}

# hosts_of BINARY NODE: print the services of a node that the database knows.
hosts_of() {
    manage service list | awk -v binary="$1" -v node="$2" '
        $1 == binary && ($2 == node || index($2, node "@") == 1) {print $2}'
}

# processes_of HOST BINARY: print how many processes are up that serve it.
processes_of() {
    manage service describe "$1" --binary "$2" --json \
        | "$VENV/bin/python" -I -c '
import json, sys
processes = json.load(sys.stdin)["processes"]
print(sum(process["state"] == "up" for process in processes))'
}

# refuse_used NODE OWN: stop if its back ends have shares, unless more than OWN
# processes serve them: those of other machines go on.
refuse_used() {
    local host hosts found
    hosts=$(hosts_of manila-share "$1")
    for host in $hosts; do
        if (($(processes_of "$host" manila-share) > $2)); then
            continue
        fi
        found=$(manage service describe "$host" --json \
            | "$VENV/bin/python" -I -c '
import json, sys
pools = json.load(sys.stdin)["pools"]
print(sum(pool["allocated_gb"] or 0 for pool in pools))')
        if [[ $found != 0 ]]; then
            die "$host has shares of $found GiB: move or delete them, or" \
                'give --force'
        fi
    done
}

# refuse_served ACTION: stop if services of other nodes are up that use the
# servers of this one. ACTION is to be taken there.
refuse_served() {
    local services binary host
    if ! has_servers || [[ $OWN_DATABASE != yes && $OWN_BROKER != yes \
            && $OWN_LOCKS != yes ]]; then
        return 0
    fi
    services=$(manage service list | awk -v node="$NODE_NAME" '
        /^manila-/ && $2 != node && index($2, node "@") != 1 {print $1, $2}')
    while read -r binary host; do
        if [[ -n $host ]] && (($(processes_of "$host" "$binary") > 0)); then
            die "$binary on $host uses the servers of this node, the first" \
                "of CONTROLLERS: $1 first, or give --force"
        fi
    done <<< "$services"
}

# remove_rows NODE [ARGUMENT]: forget the services of a node that is stopped.
remove_rows() {
    local binary host hosts
    for binary in manila-share manila-scheduler manila-data; do
        hosts=$(hosts_of "$binary" "$1")
        for host in $hosts; do
            if (($(processes_of "$host" "$binary") > 0)); then
                echo "Kept $binary on $host: another machine serves it."
                continue
            fi
            remove_row "$host" --binary "$binary" "${@:2}"
            changed "removed $binary on $host from the database"
        done
    done
}

# remove_row HOST ARGUMENT...: wait until its last heartbeat is old enough.
remove_row() {
    local answer attempt
    for attempt in {1..60}; do
        if answer=$(manage service remove "$@" 2>&1); then
            return
        fi
        if [[ $answer != *'was alive less than'* ]]; then
            break
        fi
        if [[ $attempt == 1 ]]; then
            echo "waiting until the last heartbeat of $1 is old enough"
        fi
        sleep 2
    done
    die "$answer"
}

# purge_state: remove what services can make again. Backups are here as well,
# and shares if a back end says so.
purge_state() {
    delete_file "$STATE/token_key" "$STATE/users" "$STATE/lock" \
        "$STATE/revoked_tokens" "$STATE/alive"
    if [[ ! -d $STATE ]]; then
        return
    fi
    if rmdir "$STATE" 2>/dev/null; then
        changed "removed $STATE"
    else
        echo "Kept $STATE: it has other files."
    fi
}
