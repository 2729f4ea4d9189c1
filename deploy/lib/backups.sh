# Backups of the first controller, and what it is restored from.
# shellcheck shell=bash disable=SC2153

BACK_UP=$ETC/back-up
BACKUP_SETTINGS=$ETC/backup-settings
BACKUP_UNIT=manila-lite-backup
# What a backup contains, while it is restored, and what its manifest says.
RESTORED=
BACKUP_NODE=
BACKUP_DATABASE=
BACKUP_REVISION=

makes_backups() {
    [[ -n $BACKUP_DIRECTORY ]] && is_first_controller
}

# set_up_backups: what writes them, and the units that run it.
set_up_backups() {
    local before=$CHANGES
    if ! makes_backups; then
        delete_backup_units
        return
    fi
    # The service may see of which time they are.
    put_directory root:manila 750 "$BACKUP_DIRECTORY"
    put_file root:root 600 "$BACKUP_SETTINGS" <<< "$(backup_settings)"
    put_file root:root 700 "$BACK_UP" < "$DEPLOY/lib/back-up"
    put_file root:root 644 "$UNITS/$BACKUP_UNIT.service" <<< "$(backup_service)"
    put_file root:root 644 "$UNITS/$BACKUP_UNIT.timer" <<< "$(backup_timer)"
    if ((CHANGES > before)); then
        act systemctl daemon-reload
    fi
}

# start_backups: every day, from when there is a schema.
start_backups() {
    if makes_backups; then
        start_unit "$BACKUP_UNIT.timer"
    fi
}

# back_up KIND: now, or stop.
back_up() {
    local file
    if ! makes_backups; then
        echo 'No backup is made, as BACKUP_DIRECTORY is empty.'
        return
    fi
    if checks; then
        changed "wrote a backup $1"
        return
    fi
    file=$("$BACK_UP" "$1") || die 'no backup was made, so nothing is migrated' \
        'or restored'
    changed "wrote $file"
}

# backup_settings: print what the backup has to know.
backup_settings() {
    local databases=() files=("$ETC" "$STATE/users" "$STATE/revoked_tokens")
    local omitted=("$STARTED" "$SERVERS" "$BACK_UP" "$BACKUP_SETTINGS"
        "$CREDENTIALS" "$MANAGE_CONF")
    local variable named=()
    if [[ $OWN_DATABASE == yes ]]; then
        databases=(manila)
    fi
    if [[ $OWN_KEYSTONE == yes ]]; then
        files+=("$KEYSTONE_ETC/fernet-keys" "$KEYSTONE_ETC/credential-keys"
            "$KEYSTONE_ETC/internal_url")
        if [[ $OWN_DATABASE == yes ]]; then
            databases+=(keystone)
        fi
    fi
    for variable in TLS_CERTIFICATE TLS_CACERT INTERNAL_CERTIFICATE \
            INTERNAL_CACERT EXTRA_CONF EXTRA_SECRETS; do
        if [[ -n ${!variable} ]]; then
            named+=("${!variable}")
        fi
    done
    echo '# Written by deploy.'
    printf '%s=%q\n' NODE "$NODE_NAME" DATABASE "$DATABASE" \
        DIRECTORY "$BACKUP_DIRECTORY" KEPT "$BACKUPS_KEPT" \
        LOCAL_CONF "$(local_conf)"
    echo "DATABASES=(${databases[*]@Q})"
    echo "FILES=(${files[*]@Q})"
    # What is true of this machine only, what makes backups, and what is made of
    # the secrets.
    echo "OMITTED=(${omitted[*]@Q})"
    echo "NAMED=(${named[*]@Q})"
}

backup_service() {
    cat <<END
# Written by deploy.
[Unit]
Description=manila_lite: backup of the controller
After=mariadb.service postgresql.service

[Service]
Type=oneshot
ExecStart=$BACK_UP
Nice=10
IOSchedulingClass=idle
PrivateTmp=true
NoNewPrivileges=true
ProtectSystem=full
ReadWritePaths=$BACKUP_DIRECTORY
END
}

backup_timer() {
    cat <<END
# Written by deploy.
[Unit]
Description=manila_lite: daily backup of the controller

[Timer]
OnCalendar=daily
RandomizedDelaySec=1h
Persistent=true

[Install]
WantedBy=timers.target
END
}

# stop_backups: while the database is replaced.
stop_backups() {
    local unit
    for unit in "$BACKUP_UNIT.timer" "$BACKUP_UNIT.service"; do
        if [[ -e $UNITS/$unit ]]; then
            systemctl stop "$unit"
        fi
    done
}

# delete_backup_units: the backups stay.
delete_backup_units() {
    local before=$CHANGES
    if [[ -e $UNITS/$BACKUP_UNIT.timer ]]; then
        act systemctl disable --now "$BACKUP_UNIT.timer"
    fi
    delete_file "$UNITS/$BACKUP_UNIT".{timer,service} "$BACK_UP" \
        "$BACKUP_SETTINGS"
    if ((CHANGES > before)); then
        act systemctl daemon-reload
    fi
}

# delete_backups: all of them, which have passwords.
delete_backups() {
    if [[ -n $BACKUP_DIRECTORY ]]; then
        delete_file "$BACKUP_DIRECTORY"
    fi
}

# has_schema DATABASE: whether a database on this machine was migrated.
has_schema() {
    local found
    found=$("administer_$DATABASE" "$1" 2> /dev/null \
        <<< 'SELECT version_num FROM alembic_version') && [[ -n $found ]]
}

# open_backup FILE: copy what it contains to RESTORED, if it is complete.
open_backup() {
    local names line
    # /tmp may be in memory.
    RESTORED=$(mktemp -d -p "${TMPDIR:-/var/tmp}" manila-lite-restore.XXXXXXXX)
    names=$(tar -tf "$1" 2> /dev/null) \
        || die "$1 is no backup, or only the beginning of one"
    if [[ $names != manifest* ]] || grep -qvxE '[a-z.]+' <<< "$names"; then
        die "$1 is not a backup of manila_lite"
    fi
    tar -xf "$1" -C "$RESTORED" --no-same-owner
    line=$(head -n 1 "$RESTORED/manifest")
    [[ $line == 'manila_lite backup 1' ]] \
        || die "$1 is not a backup that this release can read"
    (
        cd "$RESTORED"
        sed '1,/^$/d' manifest | sha256sum --check --strict --status
    ) || die "$1 has changed since it was written"
    BACKUP_NODE=$(backup_value NODE)
    BACKUP_DATABASE=$(backup_value DATABASE)
    BACKUP_REVISION=$(backup_value REVISION)
}

# backup_value NAME: print what the manifest says.
backup_value() {
    sed -n "1,/^\$/s/^$1=//p" "$RESTORED/manifest"
}

# take_local_conf: that of the backup, unless there is one.
take_local_conf() {
    local file
    file=$(local_conf)
    if [[ ! -e $file && -e $RESTORED/local.conf ]]; then
        put_file root:root 600 "$file" < "$RESTORED/local.conf"
    fi
}

# check_backup: stop unless this controller can be restored from it.
check_backup() {
    local newest
    is_first_controller || die 'only the first controller is restored,' \
        "$FIRST_CONTROLLER; the others are set up again"
    own_servers
    if [[ $OWN_DATABASE != yes || ! -e $RESTORED/manila.dump ]]; then
        die 'only a database of this node is restored, from a backup that has it'
    fi
    [[ $BACKUP_NODE == "$NODE_NAME" ]] \
        || die "this is a backup of $BACKUP_NODE; NODE_NAME is $NODE_NAME"
    [[ $BACKUP_DATABASE == "$DATABASE" ]] \
        || die "this is a backup of $BACKUP_DATABASE; DATABASE is $DATABASE"
    newest=$(newest_schema)
    if [[ $BACKUP_REVISION > $newest ]]; then
        die "the backup has schema $BACKUP_REVISION, which is newer than" \
            "$newest of these sources"
    fi
}

# newest_schema: print that of the sources beside deploy.
newest_schema() {
    sed -n "s/^HEAD = '\(.*\)'/\1/p" "$DEPLOY/../manila_lite/db/schema.py"
}

# put_backup_files: those that this node does not have; others are kept.
put_backup_files() {
    local name
    if prints "^${KEYSTONE_ETC#/}/" tar -tf "$RESTORED/files.tar"; then
        add_keystone_user
    fi
    while read -r name; do
        if [[ $name == */ ]]; then
            continue
        elif [[ ! -e /$name && ! -L /$name ]]; then
            changed "restored /$name"
        elif ! tar -xOf "$RESTORED/files.tar" --occurrence=1 "$name" \
                | cmp -s - "/$name"; then
            echo "Kept /$name, which differs from that of the backup."
        fi
    done < <(tar -tf "$RESTORED/files.tar")
    tar -C / -xf "$RESTORED/files.tar" --same-owner --same-permissions \
        --skip-old-files
}

# restore_databases: each is replaced when all of it has been read.
restore_databases() {
    local file name
    for file in "$RESTORED"/*.dump; do
        name=$(basename "$file" .dump)
        if [[ $name == keystone ]]; then
            # It owns what is restored.
            "make_${DATABASE}_account" "$name" "$KEYSTONE_DATABASE_PASSWORD"
        fi
        "load_$DATABASE" "${name}_restored" "$name" "$file"
        "replace_in_$DATABASE" "$name" "${name}_restored"
        changed "restored the database $name"
    done
}

# load_mariadb DATABASE OWNER FILE: into a new database.
load_mariadb() {
    mariadb <<END
DROP DATABASE IF EXISTS $1;
CREATE DATABASE $1 CHARACTER SET utf8mb4;
END
    gzip --decompress --stdout < "$3" \
        | mariadb --default-character-set=utf8mb4 "$1"
}

# replace_in_mariadb DATABASE OTHER: give it the tables of the other one.
replace_in_mariadb() {
    local tables table moves=()
    tables=$(mariadb --skip-column-names <<< "SHOW TABLES IN $2")
    for table in $tables; do
        moves+=("$2.$table TO $1.$table")
    done
    # A client that was not stopped may use a table.
    mariadb <<END
SET SESSION lock_wait_timeout = 60;
DROP DATABASE IF EXISTS $1;
CREATE DATABASE $1 CHARACTER SET utf8mb4;
RENAME TABLE $(IFS=,; echo "${moves[*]}");
DROP DATABASE $2;
END
}

load_postgresql() {
    administer_postgresql postgres <<END
DROP DATABASE IF EXISTS $1 WITH (FORCE);
CREATE DATABASE $1 OWNER $2;
END
    # Accounts of services get their rights again from grant_rights.
    runuser -u postgres -- pg_restore --exit-on-error --no-privileges \
        --dbname "$1" < "$3"
}

replace_in_postgresql() {
    administer_postgresql postgres <<END
DROP DATABASE IF EXISTS $1 WITH (FORCE);
ALTER DATABASE $2 RENAME TO $1;
END
}
