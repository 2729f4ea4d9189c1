# Shared by all roles: variables, files that change only when they must,
# Debian packages, secrets. To be sourced by bash with `set -euo pipefail`.
#
# Whatever changes the machine says so with `change` or `changed`. A second run
# prints nothing but "Nothing to change." With --check these lines are printed and
# nothing is changed: whatever else a function of a role does goes through `act`.
# shellcheck shell=bash disable=SC2034

ETC=/etc/manila_lite
STATE=/var/lib/manila
LOGS=/var/log/manila
# A link to one of the directories in RELEASES.
VENV=/opt/manila_lite
RELEASES=/opt/manila_lite-releases
UNITS=/etc/systemd/system
SECRETS=$ETC/secrets
ROLES=$ETC/roles
CONF=$ETC/manila_lite.conf
# What systemd hands to each service, and what commands of root read: they have
# passwords.
CREDENTIALS=$ETC/credentials
MANAGE_CONF=$ETC/manila-lite-manage.conf
# Of services that are older than credentials.
TOKEN_KEY_FILE=$ETC/token_key
# A copy of what TLS_CACERT names.
CACERT=$ETC/cacert.pem
# Exists where `set_up_servers` has run: the units that it started, one a line.
SERVERS=$ETC/servers
# What share nodes get of the secrets.
NODE_SECRETS=$ETC/node-secrets
# What each service was started with, or `restart` if it has to be restarted.
STARTED=$ETC/started

# Set by `install_program`: the version beside these scripts. Without it, the
# one in use is meant.
PROGRAM=

CHANGES=0
# Whether changes are only reported: `yes` with --check.
CHECK=no
# What --check leaves out: what becomes of paths, and what units are started with.
declare -A PLANNED=() NOTED=()
# Set by `act_for`.
AS=()
# Set by `for_unit`: the unit that reads a file only when it starts.
READER=

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# prints PATTERN COMMAND...: whether a command prints a line like that. It is
# read to its end: one that loses its reader, as to `grep -q`, would fail.
prints() {
    local pattern=$1 output
    shift
    output=$("$@") || die "this command has failed: $*"
    grep -q -e "$pattern" <<< "$output"
}

changed() {
    printf '%s\n' "$*"
    CHANGES=$((CHANGES + 1))
}

checks() {
    [[ $CHECK == yes ]]
}

# act COMMAND...: run it, unless changes are only reported.
act() {
    if [[ $CHECK == no ]]; then
        "$@"
    fi
}

# change TEXT COMMAND...: make a change, and say so.
change() {
    act "${@:2}"
    changed "$1"
}

# is_planned PATH STATE: whether --check has reported that already. Notes it.
is_planned() {
    if checks && [[ ${PLANNED[$1]:-} == "$2" ]]; then
        return 0
    fi
    PLANNED[$1]=$2
    return 1
}

# quietly COMMAND...: without what it prints, but for errors.
quietly() {
    "$@" > /dev/null
}

report_changes() {
    if [[ $CHANGES == 0 ]]; then
        echo 'Nothing to change.'
    elif checks; then
        echo "Changes: $CHANGES. None of them was made."
    else
        echo "Changes: $CHANGES."
    fi
}

# begin ROLE [--check]: what the scripts of all roles do first.
begin() {
    require_root
    case ${*:2} in
        '') ;;
        --check)
            # A change that is not left out fails there.
            exec unshare --mount "$DEPLOY/lib/read-only" "$LOGS" \
                "$0" --check read-only
            ;;
        '--check read-only') CHECK=yes ;;
        *) die "the only option is --check, not ${*:2}" ;;
    esac
    read_variables
    if checks && ! has_role "$1"; then
        # Each step needs those before it.
        changed "set up the role $1"
        report_changes
        exit
    fi
}

require_root() {
    [[ $EUID == 0 ]] || die 'only root can do this'
    # What is created is for root alone, unless a function says otherwise.
    umask 077
}

local_conf() {
    echo "${LOCAL_CONF:-$DEPLOY/local.conf}"
}

# put_local_conf: take the place of local.conf by the file that NEW_LOCAL_CONF
# names, if it does.
put_local_conf() {
    if [[ -n ${NEW_LOCAL_CONF:-} ]]; then
        put_file root:root 600 "$(local_conf)" < "$NEW_LOCAL_CONF"
    fi
}

# Read local.conf, or what will take its place, and set what it leaves out.
read_variables() {
    local file
    file=${NEW_LOCAL_CONF:-$(local_conf)}
    if [[ -e $file ]]; then
        # shellcheck source=deploy/local.conf.example
        source "$file"
    elif [[ -n ${LOCAL_CONF:-} ]]; then
        die "$file does not exist"
    fi
    : "${NODE_IP:=127.0.0.1}"
    : "${NODE_NAME:=$(uname -n)}"
    : "${CONTROLLERS:=$NODE_IP}"
    : "${API_ADDRESS:=${CONTROLLERS%% *}}"
    : "${API_PORT:=8786}"
    : "${API_LOCAL_PORT:=8785}"
    : "${API_WORKERS:=1}"
    : "${TLS_CERTIFICATE:=}"
    : "${TLS_CACERT:=}"
    : "${INTERNAL_CERTIFICATE:=}"
    : "${INTERNAL_CACERT:=}"
    : "${DATABASE:=mariadb}"
    : "${DATABASE_URL:=}"
    : "${MIGRATION_DATABASE_URL:=}"
    : "${TRANSPORT_URL:=}"
    : "${LOCKS_URL:=}"
    : "${AUTH:=http_basic}"
    : "${KEYSTONE_AUTH_URL:=}"
    : "${KEYSTONE_DATABASE_URL:=}"
    : "${KEYSTONE_PORT:=5000}"
    : "${KEYSTONE_LOCAL_PORT:=5001}"
    : "${KEYSTONE_USER:=manila_lite}"
    : "${KEYSTONE_PROJECT:=service}"
    : "${ADMIN_USER:=admin}"
    : "${ADMIN_PROJECT:=admin}"
    : "${REGION:=RegionOne}"
    : "${SHARE_TYPE:=default}"
    : "${SHARE_TYPE_SPECS:=driver_handles_share_servers=False}"
    : "${BACKENDS:=disk}"
    : "${PROTOCOLS:=NFS}"
    : "${EXTRA_CONF:=}"
    : "${EXTRA_SECRETS:=}"
    : "${BACKUP_DIRECTORY=/var/backups/manila_lite}"
    : "${BACKUPS_KEPT:=14}"
    : "${BACKUP_COMMAND:=}"
    : "${GATEWAY_BACKEND:=ceph}"
    : "${GATEWAY_ADDRESS:=$NODE_IP}"
    case $DATABASE in
        mariadb | postgresql) ;;
        *) die "DATABASE is mariadb or postgresql, not $DATABASE" ;;
    esac
    case $AUTH in
        http_basic | keystone) ;;
        *) die "AUTH is http_basic or keystone, not $AUTH" ;;
    esac
    [[ $API_WORKERS =~ ^[1-9][0-9]*$ ]] \
        || die "API_WORKERS is a number of processes, not $API_WORKERS"
    [[ $BACKUPS_KEPT =~ ^[1-9][0-9]*$ ]] \
        || die "BACKUPS_KEPT is a number of backups, not $BACKUPS_KEPT"
    FIRST_CONTROLLER=${CONTROLLERS%% *}
    if [[ $FIRST_CONTROLLER == 127.0.0.1 ]]; then
        # Nothing leaves the machine.
        : "${INTERNAL_TLS:=no}"
    fi
    : "${INTERNAL_TLS:=yes}"
    case $INTERNAL_TLS in
        yes | optional | no) ;;
        *) die "INTERNAL_TLS is yes, optional or no, not $INTERNAL_TLS" ;;
    esac
    if [[ $INTERNAL_TLS != no && $NODE_IP == 127.0.0.1 ]]; then
        die "INTERNAL_TLS=$INTERNAL_TLS needs a NODE_IP that is not 127.0.0.1"
    fi
    if [[ -n $INTERNAL_CERTIFICATE && -z $INTERNAL_CACERT ]]; then
        die 'INTERNAL_CERTIFICATE needs INTERNAL_CACERT'
    fi
}

is_first_controller() {
    [[ $NODE_IP == "$FIRST_CONTROLLER" ]]
}

# act_for DIRECTORY: set AS to what precedes a command that changes files there.
#
# Root changes only what other users cannot replace by links. Where they can,
# the first of them on the way to the directory does it: root would follow
# links of this user to any file of the machine.
act_for() {
    local mode user group name
    AS=()
    [[ $EUID == 0 ]] || return 0
    while read -r mode user group name; do
        # Other lines are the heading, and names that do not exist.
        if [[ ! $mode =~ ^[dl][-rwxsStT]{9}$ ]]; then
            continue
        fi
        if [[ $user != root ]]; then
            AS=(runuser -u "$user" --)
            return 0
        fi
        case $mode in
            l* | *[tT]) ;;
            ????????w?) die "every user can change the directory $name" ;;
            ?????w????)
                [[ $group == root ]] \
                    || die "the group $group can change the directory $name"
                ;;
        esac
    done < <(LC_ALL=C namei --modes --owners "$1")
}

# replace_file OWNER:GROUP MODE PATH: write standard input into a new file,
# and give it the name of the old one. AS is set for its directory.
replace_file() {
    local new
    # What logrotate and others read of a directory leaves out such names.
    new=$("${AS[@]}" mktemp "$3.XXXXXXXX~")
    "${AS[@]}" tee "$new" > /dev/null
    "${AS[@]}" chown "$1" "$new"
    "${AS[@]}" chmod "$2" "$new"
    # Not into a directory of this name.
    "${AS[@]}" mv -fT "$new" "$3"
}

# note_reader: note that READER has to be restarted, before a file changes.
note_reader() {
    if [[ -n $READER ]]; then
        note_start "$READER" restart
    fi
}

# put_file OWNER:GROUP MODE PATH: write standard input, if it differs.
put_file() {
    local owner=$1 mode=$2 path=$3 text
    # The shell would remove newlines at the end.
    text=$(cat; printf x)
    text=${text%x}
    act_for "$(dirname "$path")"
    if [[ -f $path && ! -L $path ]] \
            && [[ $(stat -c %U:%G:%a "$path") == "$owner:$mode" ]] \
            && printf %s "$text" | "${AS[@]}" cmp -s - "$path"; then
        return
    fi
    if is_planned "$path" "file $text"; then
        return
    fi
    note_reader
    change "wrote $path" replace_file "$owner" "$mode" "$path" \
        < <(printf %s "$text")
}

# put_directory OWNER:GROUP MODE PATH
put_directory() {
    local owner=$1 mode=$2 path=$3
    if [[ -d $path \
            && $(stat -L -c %U:%G:%a "$path") == "$owner:$mode" ]]; then
        return
    fi
    if is_planned "$path" "directory $owner $mode"; then
        return
    fi
    act_for "$(dirname "$path")"
    change "made directory $path" "${AS[@]}" install -d \
        -o "${owner%:*}" -g "${owner#*:}" -m "$mode" "$path"
}

# put_line FILE LINE: append a line that the file does not have.
put_line() {
    local file=$1 line=$2
    act_for "$(dirname "$file")"
    if "${AS[@]}" grep -qsxF -e "$line" "$file"; then
        return
    fi
    note_reader
    change "added a line to $file" append_line "$file" <<< "$line"
}

# append_line FILE: standard input.
append_line() {
    act_for "$(dirname "$1")"
    "${AS[@]}" tee -a "$1" > /dev/null
}

# delete_file PATH...: it, or a directory and all below, but not what a link
# leads to.
delete_file() {
    local path
    for path; do
        if [[ -e $path || -L $path ]] && ! is_planned "$path" gone; then
            note_reader
            change "removed $path" rm -rf -- "$path"
        fi
    done
}

delete_line() {
    local file=$1 line=$2
    act_for "$(dirname "$file")"
    if [[ ! -e $file ]] || ! "${AS[@]}" grep -qxF -e "$line" "$file"; then
        return
    fi
    note_reader
    change "removed a line from $file" replace_file \
        "$(stat -c %U:%G "$file")" "$(stat -c %a "$file")" "$file" \
        < <("${AS[@]}" grep -vxF -e "$line" "$file")
}

# install_packages NAME...: install Debian packages that are missing.
install_packages() {
    local package missing=()
    for package; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" \
                2>/dev/null || true) in
            installed) ;;
            *) missing+=("$package") ;;
        esac
    done
    if ((${#missing[@]} == 0)); then
        return
    fi
    change "installed ${missing[*]}" get_packages "${missing[@]}"
    if checks; then
        echo 'What follows needs these packages, and is not looked at.'
        report_changes
        exit
    fi
}

get_packages() (
    # They make files that others have to read.
    umask 022
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq --yes --no-install-recommends "$@" > /dev/null
)

# Passwords of this installation, made once on the first controller unless
# they are in the file already. Other controllers have a copy, and other nodes
# one of NODE_SECRETS, without passwords of administrators. They are passed on by
# files and pipes only: arguments of programs can be seen by every user of the
# machine. A copy that NEW_SECRETS names is put in its place first.
read_secrets() {
    if [[ -n ${NEW_SECRETS:-} ]]; then
        put_file root:root 600 "$SECRETS" < "$NEW_SECRETS"
    elif [[ ! -e $SECRETS ]]; then
        is_first_controller || die "copy $NODE_SECRETS of" \
            "$FIRST_CONTROLLER to $SECRETS, with mode 0600; on a controller," \
            "copy $SECRETS"
        put_file root:root 600 "$SECRETS" < /dev/null
    fi
    if [[ -z ${PLANNED[$SECRETS]:-} ]]; then
        case $(stat -c %U:%a "$SECRETS") in
            root:600 | root:400) ;;
            *) die "$SECRETS must belong to root and have mode 0600" ;;
        esac
    fi
    local name
    for name in DATABASE BROKER LOCKS ADMIN KEYSTONE KEYSTONE_DATABASE \
            CONTROLLER_DATABASE NODE_DATABASE NODE_BROKER; do
        add_secret "${name}_PASSWORD" "$(random_word)"
    done
    add_secret TOKEN_KEY "$(head -c 32 /dev/urandom | base64)"
    make_ca
    # shellcheck source=/dev/null
    source "${NEW_SECRETS:-$SECRETS}"
}

# has_node_secrets: whether this node has no passwords of administrators.
has_node_secrets() {
    [[ -e $SECRETS ]] && grep -q '^NODE_DATABASE_PASSWORD=' "$SECRETS" \
        && ! grep -q '^DATABASE_PASSWORD=' "$SECRETS"
}

refuse_node_secrets() {
    if has_node_secrets; then
        die "a controller needs a copy of $SECRETS of $FIRST_CONTROLLER, not" \
            "of $NODE_SECRETS"
    fi
}

# put_node_secrets: what nodes need that are no controllers.
put_node_secrets() {
    is_first_controller || return 0
    put_file root:root 600 "$NODE_SECRETS" <<< "$(printf '%s=%q\n' \
        NODE_DATABASE_PASSWORD "$NODE_DATABASE_PASSWORD" \
        NODE_BROKER_PASSWORD "$NODE_BROKER_PASSWORD" \
        LOCKS_PASSWORD "$LOCKS_PASSWORD" \
        CA_CERTIFICATE "${CA_CERTIFICATE:-}")"
}

# add_secret NAME VALUE: unless there is one. Other nodes may have a copy of
# an older release, which has all that they need.
add_secret() {
    if grep -q "^$1=" "$SECRETS" || ! is_first_controller; then
        return 0
    fi
    change "added $1 to $SECRETS" append_line "$SECRETS" \
        < <(printf '%s=%q\n' "$1" "$2")
    printf -v "$1" %s "$2"
}

random_word() {
    head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# Roles that this node has: they decide what its configuration contains.
add_role() {
    [[ -e $ROLES ]] || touch "$ROLES"
    put_line "$ROLES" "$1"
}

# needs_secrets: whether this node has a role that uses the servers.
needs_secrets() {
    [[ -e $ROLES ]] && grep -qvx gateway "$ROLES"
}

has_role() {
    [[ -e $ROLES ]] && grep -qx "$1" "$ROLES"
}
