# The units of the services.
# shellcheck shell=bash disable=SC2034,SC2153

# Those of the controller first: api and scheduler may be names of it.
OUR_UNITS=(manila-lite-controller manila-lite-api manila-lite-scheduler
    manila-lite-share manila-lite-data manila-lite-nfs-gateway)

# The name of a drop-in for a unit of Debian's.
BOOT_ORDER=manila-lite.conf

# unit_is_on NAME: whether it runs, and is started at boot.
unit_is_on() {
    systemctl --quiet is-enabled "$1" 2>/dev/null \
        && systemctl --quiet is-active "$1"
}

start_unit() {
    if unit_is_on "$1"; then
        return
    fi
    change "started $1" systemctl enable --now "$1"
}

restart_unit() {
    change "restarted $1" systemctl restart "$1"
}

# run_unit NAME TEXT FILE...: start a service of ours. Restart it if its unit
# file, one of the files or the text is not what it was started with.
run_unit() {
    local name=$1 text=$2
    if ! checks || ! is_changed "$UNITS/$name.service" "${@:3}"; then
        text+=$'\n'$(sha256sum "$UNITS/$name.service" "${@:3}")
    fi
    if unit_is_on "$name" && was_started_with "$name" "$text"; then
        return
    fi
    act systemctl daemon-reload
    if systemctl --quiet is-active "$name"; then
        restart_unit "$name"
    fi
    start_unit "$name"
    note_start "$name" "$text"
}

# is_changed FILE...: whether this run changes one of them.
is_changed() {
    local path
    for path; do
        if [[ -n ${PLANNED[$path]:-} ]]; then
            return 0
        fi
    done
    return 1
}

# was_started_with NAME TEXT: whether that was noted by note_start.
was_started_with() {
    if [[ -n ${NOTED[$1]:-} ]]; then
        [[ ${NOTED[$1]} == "$2" ]]
    else
        [[ -e $STARTED/$1 && $(< "$STARTED/$1") == "$2" ]]
    fi
}

note_start() {
    local AS=()
    if checks; then
        NOTED[$1]=$2
        return
    fi
    mkdir -p "$STARTED"
    act_for "$STARTED"
    replace_file root:root 600 "$STARTED/$1" <<< "$2"
}

# for_unit NAME FUNCTION ARGUMENT...: call put_file or put_line for a file
# that a unit reads only when it starts. Before the file changes, this is noted:
# if this run is interrupted, the next one restarts the unit.
for_unit() {
    local READER=$1
    "${@:2}"
}

# run_server NAME: start a unit of Debian's; restart it if `for_unit` has
# changed its files.
run_server() {
    restart_changed "$1"
    start_unit "$1"
}

# restart_changed NAME: restart a unit that runs if `for_unit` has changed its
# files.
restart_changed() {
    if ! was_started_with "$1" restart; then
        return 0
    fi
    if systemctl --quiet is-active "$1"; then
        restart_unit "$1"
    fi
    act rm "$STARTED/$1"
}

# note_stopped NAME: note that a unit does not run, before it is started.
note_stopped() {
    if ! systemctl --quiet is-active "$1" && ! was_stopped "$1"; then
        act append_line "$SERVERS" <<< "$1"
    fi
}

# was_stopped NAME: whether that was noted.
was_stopped() {
    grep -qsxF -e "$1" "$SERVERS"
}

# stop_again NAME: stop a unit that was noted.
stop_again() {
    was_stopped "$1" || return 0
    if systemctl --quiet is-active "$1"; then
        systemctl disable --now "$1"
        changed "stopped $1"
    fi
    sed -i "/^$1\$/d" "$SERVERS"
}

# put_boot_order NAME FUNCTION: let a unit of Debian's start where its address
# comes late at boot. The function prints the drop-in.
put_boot_order() {
    local directory=$UNITS/$1.service.d before=$CHANGES
    if [[ ! -d $directory ]]; then
        put_directory root:root 755 "$directory"
    fi
    put_file root:root 644 "$directory/$BOOT_ORDER" <<< "$("$2")"
    if ((CHANGES > before)); then
        act systemctl daemon-reload
    fi
}

# delete_boot_order NAME: its other drop-ins stay.
delete_boot_order() {
    local directory=$UNITS/$1.service.d before=$CHANGES
    delete_file "$directory/$BOOT_ORDER"
    if ((CHANGES > before)); then
        act rmdir --ignore-fail-on-non-empty "$directory"
        act systemctl daemon-reload
    fi
}

# put_unit_files DIRECTORY NAME...
put_unit_files() {
    local name text changes
    for name in "${@:2}"; do
        if [[ $name == "$GATEWAY_UNIT" ]]; then
            text=$(gateway_unit "$1/$name@.service")
        else
            changes="s/ --apis [0-9]* / --apis $API_WORKERS /"
            if ! sees_all_mounts "$name"; then
                changes+='; s/^#InaccessiblePaths=/InaccessiblePaths=/'
            fi
            text=$(sed "$changes" "$1/$name.service")
        fi
        put_file root:root 644 "$UNITS/$name.service" <<< "$text"
    done
}

# sees_all_mounts NAME: whether a drop-in, such as that for btrfs, wants a unit to
# have the mounts of the machine.
sees_all_mounts() {
    grep -qs '^PrivateTmp=false' "$UNITS/$1.service.d"/*.conf
}

# role_units ROLE: print the names of the services that a role has.
role_units() {
    case $1 in
        controller)
            if [[ -e $(program_units)/manila-lite-controller.service ]]; then
                echo manila-lite-controller
            else
                printf '%s\n' manila-lite-scheduler manila-lite-api
            fi
            ;;
        gateway) echo "$GATEWAY_UNIT" ;;
        *) echo "manila-lite-$1" ;;
    esac
}

# delete_other_units NAME...: of a controller, where a version before or after
# this one has one unit for API and scheduler, or one for each. Their drop-ins
# stay: API and scheduler are other names of the unit for both.
delete_other_units() {
    local name
    for name in manila-lite-{controller,api,scheduler}; do
        if [[ -e $UNITS/$name.service && ! -L $UNITS/$name.service \
                && " $* " != *" $name "* ]]; then
            act systemctl disable --now "$name"
            delete_file "$UNITS/$name.service" "$STARTED/$name"
        fi
    done
}

# role_conf ROLE: print the part of the configuration that a role reads.
# The data service reads that of the back ends, too.
role_conf() {
    local roles=("$1")
    if [[ $1 == gateway ]]; then
        gateway_conf
        return
    elif [[ $1 == data ]]; then
        mapfile -t roles < "$ROLES"
    fi
    plain_conf "${roles[@]}"
    secret_conf "$1"
    extra_conf
}

# start_role ROLE: start the services of a role from PROGRAM; restart those
# that run something older.
start_role() {
    local names name text files=()
    mapfile -t names < <(role_units "$1")
    if [[ $1 == gateway ]]; then
        files+=("$GATEWAY_CEPH" "$GATEWAY_KEYRING")
    fi
    if [[ $1 != gateway && -e $CA ]] && uses_tls; then
        files+=("$CA")
    fi
    if [[ $1 == controller && -e $CACERT ]] && uses_keystone; then
        files+=("$CACERT")
    fi
    text=$PROGRAM$'\n'$(role_conf "$1" | sha256sum)
    if [[ $1 == controller ]]; then
        delete_other_units "${names[@]}"
    fi
    put_unit_files "$(program_units)" "${names[@]}"
    if [[ $1 != gateway ]] && needs_old_conf; then
        # They are older than those that run.
        put_conf
    fi
    switch_program
    for name in "${names[@]}"; do
        run_unit "$name" "$text" "${files[@]}"
    done
    if [[ $1 != gateway ]]; then
        # Perhaps the last unit that has found passwords there.
        put_conf
    fi
    remove_old_programs
}

# stop_units NAME...: those that exist.
stop_units() {
    local name
    for name; do
        if [[ -e $UNITS/$name.service ]]; then
            systemctl stop "$name"
        fi
    done
}

# delete_units NAME...: stop services and remove their unit files.
delete_units() {
    local name
    for name; do
        if [[ -e $UNITS/$name.service ]]; then
            systemctl disable --now "$name"
        fi
        delete_file "$UNITS/$name.service" "$UNITS/$name.service.d" \
            "$STARTED/$name"
    done
    systemctl daemon-reload
}
