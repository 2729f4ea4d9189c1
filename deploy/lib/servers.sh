# Database, broker and locks on the first controller, with an account each.
# Not used where local.conf names servers by URL.
# shellcheck shell=bash

RABBITMQ_ENV=/etc/rabbitmq/rabbitmq-env.conf
RABBITMQ_HOSTS=/etc/rabbitmq/manila-lite.inetrc

# use_servers: set the URLs that local.conf does not give.
use_servers() {
    local account at=$FIRST_CONTROLLER
    own_servers
    if [[ -n ${DATABASE_PASSWORD:-} ]]; then
        account=manila:$(quote_url "$DATABASE_PASSWORD")
        : "${MIGRATION_DATABASE_URL:=${DATABASE_URL:-$(own_database_url "$account")}}"
    fi
    : "${DATABASE_URL:=$(own_database_url "$(database_account)")}"
    : "${TRANSPORT_URL:=$(own_transport_url "$(broker_account)")}"
    if uses_tls; then
        : "${LOCKS_URL:=redis://:${LOCKS_PASSWORD}@$at:6380?ssl=true&ssl_ca_certs=$CA}"
    else
        : "${LOCKS_URL:=redis://:${LOCKS_PASSWORD}@$at:6379}"
    fi
    # tooz takes the password as it is in the URL.
    if [[ $OWN_LOCKS == yes && $LOCKS_PASSWORD == *[]/?#[]* ]]; then
        die "LOCKS_PASSWORD in $SECRETS may not contain / ? # [ ]"
    fi
}

# own_database_url ACCOUNT: print that of an account with its password.
own_database_url() {
    local scheme=mysql
    if [[ $DATABASE == postgresql ]]; then
        scheme=postgresql+psycopg2
    fi
    echo "$scheme://$1@$FIRST_CONTROLLER/manila$(database_tls)"
}

# own_transport_url ACCOUNT
own_transport_url() {
    local port=5672
    if uses_tls; then
        port=5671
    fi
    echo "rabbit://$1@$FIRST_CONTROLLER:$port/manila"
}

# database_url_of ROLE: print the URL of the account that its services have.
database_url_of() {
    if [[ $1 != controller && ${OWN_DATABASE:-no} == yes \
            && -n ${NODE_DATABASE_PASSWORD:-} ]]; then
        own_database_url "manila_node:$(quote_url "$NODE_DATABASE_PASSWORD")"
    else
        echo "$DATABASE_URL"
    fi
}

# transport_url_of ROLE: print the same for the broker.
transport_url_of() {
    if [[ $1 != controller && ${OWN_BROKER:-no} == yes \
            && -n ${NODE_BROKER_PASSWORD:-} ]]; then
        own_transport_url "manila_node:$(quote_url "$NODE_BROKER_PASSWORD")"
    else
        echo "$TRANSPORT_URL"
    fi
}

# database_tls: print what a URL needs to verify the server.
database_tls() {
    if ! uses_tls; then
        return
    fi
    case $DATABASE in
        mariadb) echo "?ssl_ca=$CA" ;;
        postgresql) echo "?sslmode=verify-full&sslrootcert=$CA" ;;
    esac
}

# database_account: print name and password, for a URL, of the account with the
# most rights that services of this node have. Secrets of an older release have one account.
database_account() {
    if [[ -n ${CONTROLLER_DATABASE_PASSWORD:-} ]]; then
        printf 'manila_controller:%s' \
            "$(quote_url "$CONTROLLER_DATABASE_PASSWORD")"
    elif [[ -n ${NODE_DATABASE_PASSWORD:-} ]]; then
        printf 'manila_node:%s' "$(quote_url "$NODE_DATABASE_PASSWORD")"
    else
        printf 'manila:%s' "$(quote_url "$DATABASE_PASSWORD")"
    fi
}

# broker_account: print the same for the broker.
broker_account() {
    if [[ -n ${BROKER_PASSWORD:-} ]]; then
        printf 'manila:%s' "$(quote_url "$BROKER_PASSWORD")"
    else
        printf 'manila_node:%s' "$(quote_url "$NODE_BROKER_PASSWORD")"
    fi
}

# own_servers: set which servers local.conf does not give by URL.
own_servers() {
    OWN_DATABASE=${DATABASE_URL:-yes}
    OWN_BROKER=${TRANSPORT_URL:-yes}
    OWN_LOCKS=${LOCKS_URL:-yes}
}

# has_servers: whether the servers are on this machine, also after a removal.
# Older releases have made the secrets only.
has_servers() {
    [[ -e $SERVERS ]] || { [[ -e $SECRETS ]] && is_first_controller; }
}

set_up_servers() {
    is_first_controller || return 0
    [[ -e $SERVERS ]] || act touch "$SERVERS"
    if [[ $OWN_DATABASE == yes ]]; then
        "set_up_$DATABASE"
    fi
    if [[ $OWN_BROKER == yes ]]; then
        set_up_rabbitmq
    fi
    if [[ $OWN_LOCKS == yes ]]; then
        set_up_redis
    fi
}

# listen_addresses SEPARATOR: loopback, and the address of this node.
listen_addresses() {
    if [[ $NODE_IP == 127.0.0.1 ]]; then
        echo 127.0.0.1
    else
        echo "127.0.0.1$1$NODE_IP"
    fi
}

# order_boot UNIT FUNCTION: loopback is there before any server.
order_boot() {
    if [[ $NODE_IP == 127.0.0.1 ]]; then
        delete_boot_order "$1"
    else
        put_boot_order "$@"
    fi
}

set_up_mariadb() {
    install_packages mariadb-server
    renew_certificates
    for_unit mariadb put_file root:root 644 \
        /etc/mysql/mariadb.conf.d/90-manila-lite.cnf <<END
# Written by deploy.
[mariadbd]
bind-address = $(listen_addresses ,)
max_connections = 500
$(mariadb_tls)
END
    for_unit mariadb disable_socket mariadb.socket
    run_server mariadb
    make_mariadb_account manila "$DATABASE_PASSWORD"
    make_mariadb_login manila_controller "$CONTROLLER_DATABASE_PASSWORD"
    make_mariadb_login manila_node "$NODE_DATABASE_PASSWORD"
}

mariadb_tls() {
    uses_tls || return 0
    printf '%s = %s\n' ssl-cert "$TLS/mysql.pem" ssl-key "$TLS/mysql.pem"
    if [[ $INTERNAL_TLS == yes ]]; then
        echo 'require-secure-transport = ON'
    fi
}

# disable_socket NAME: Debian's package of MariaDB enables one. From the next
# boot systemd would listen on all addresses, whatever bind-address says. It
# stays disabled when the node is removed.
disable_socket() {
    if systemctl --quiet is-enabled "$1" 2>/dev/null; then
        note_reader
        change "disabled $1" systemctl disable --now "$1"
    fi
}

# make_mariadb_account NAME PASSWORD: and a database of the same name.
make_mariadb_account() {
    if mariadb_answers "$@"; then
        return
    fi
    change "made the account $1 in MariaDB" mariadb <<END
CREATE DATABASE IF NOT EXISTS $1 CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS $1@'%';
ALTER USER $1@'%' IDENTIFIED BY $(quote_mysql "$2");
GRANT ALL PRIVILEGES ON $1.* TO $1@'%';
END
}

# make_mariadb_login NAME PASSWORD: an account without any rights.
make_mariadb_login() {
    if mariadb_answers "$@" ''; then
        return
    fi
    change "made the account $1 in MariaDB" mariadb <<END
CREATE USER IF NOT EXISTS $1@'%';
ALTER USER $1@'%' IDENTIFIED BY $(quote_mysql "$2");
END
}

# mariadb_answers NAME PASSWORD [DATABASE]: whether the account can use its
# database, or sign in if that is empty.
mariadb_answers() {
    local verified=()
    if uses_tls; then
        verified=("--ssl-ca=$CA" --ssl-verify-server-cert)
    fi
    mariadb --defaults-extra-file=<(printf '[client]\npassword=%s\n' \
        "$(quote_word "$2")") "${verified[@]}" \
        --host="$FIRST_CONTROLLER" --user="$1" \
        --execute='SELECT 1' --database="${3-$1}" > /dev/null 2>&1
}

# grant_rights: give the accounts of services what this release needs, after
# the migration of the database.
grant_rights() {
    # Only the program knows them, once the schema is its own.
    if [[ $OWN_DATABASE != yes ]] || ! is_first_controller || checks; then
        return 0
    fi
    # Controllers may have all roles.
    grant_to manila_controller controller share data
    grant_to manila_node share data
}

# grant_to ACCOUNT SERVICE...
grant_to() {
    local before after service services=()
    for service in "${@:2}"; do
        services+=(--service "$service")
    done
    before=$("rights_in_$DATABASE" "$1")
    manage db grants --account "$1" "${services[@]}" \
        | "administer_$DATABASE" manila > /dev/null
    after=$("rights_in_$DATABASE" "$1")
    if [[ $before != "$after" ]]; then
        changed "gave the account $1 the rights of its services"
    fi
}

# administer_mariadb DATABASE: run standard input as the administrator.
administer_mariadb() {
    mariadb "$1"
}

administer_postgresql() {
    runuser -u postgres -- psql --quiet --no-psqlrc --no-align --tuples-only \
        -v ON_ERROR_STOP=1 "$1"
}

rights_in_mariadb() {
    mariadb --skip-column-names <<< "SHOW GRANTS FOR $1@'%'" | sort
}

rights_in_postgresql() {
    administer_postgresql manila <<END
SELECT table_name, column_name, privilege_type
FROM information_schema.column_privileges WHERE grantee = '$1'
UNION SELECT table_name, '', privilege_type
FROM information_schema.table_privileges WHERE grantee = '$1' ORDER BY 1, 2, 3;
END
}

set_up_postgresql() {
    install_packages postgresql
    renew_certificates
    local etc
    etc=$(echo /etc/postgresql/*/main)
    [[ -d $etc ]] || die "expected one cluster of PostgreSQL, found $etc"
    for_unit postgresql put_file postgres:postgres 644 \
        "$etc/conf.d/manila-lite.conf" <<END
# Written by deploy.
listen_addresses = '$(listen_addresses ,)'
max_connections = 500
$(postgresql_tls)
END
    local accounts=(manila manila_controller manila_node) name
    if [[ $OWN_KEYSTONE == yes ]]; then
        accounts+=(keystone)
    fi
    for name in "${accounts[@]}"; do
        put_hba_line "$etc/pg_hba.conf" "$name"
    done
    # The unit of the cluster; the other one starts all clusters.
    order_boot postgresql@ wait_for_address
    run_server postgresql
    make_postgresql_account manila "$DATABASE_PASSWORD"
    make_postgresql_login manila_controller "$CONTROLLER_DATABASE_PASSWORD"
    make_postgresql_login manila_node "$NODE_DATABASE_PASSWORD"
}

postgresql_tls() {
    if uses_tls; then
        printf "%s = '%s'\n" ssl on ssl_cert_file "$TLS/postgres.pem" \
            ssl_key_file "$TLS/postgres.pem"
    fi
}

# put_hba_line FILE ACCOUNT: let it sign in, by TLS only if that is required.
put_hba_line() {
    local type=host other=hostssl
    if [[ $INTERNAL_TLS == yes ]]; then
        type=hostssl other=host
    fi
    for_unit postgresql put_line "$1" "$(hba_line "$type" "$2")"
    for_unit postgresql delete_line "$1" "$(hba_line "$other" "$2")"
}

# hba_line TYPE ACCOUNT: print what lets it sign in; accounts of services use
# the database manila.
hba_line() {
    echo "$1 ${2%%_*} $2 all scram-sha-256 # manila_lite"
}

# make_postgresql_login NAME PASSWORD: an account without any rights.
make_postgresql_login() {
    if postgresql_answers "$@" manila; then
        return
    fi
    change "made the account $1 in PostgreSQL" \
        administer_postgresql postgres <<END
SELECT 'CREATE ROLE $1 LOGIN' WHERE NOT EXISTS (
    SELECT FROM pg_roles WHERE rolname = '$1') \gexec
ALTER ROLE $1 PASSWORD $(quote_sql "$2");
END
}

# make_postgresql_account NAME PASSWORD: and a database of the same name.
make_postgresql_account() {
    if postgresql_answers "$@"; then
        return
    fi
    change "made the account $1 in PostgreSQL" \
        runuser -u postgres -- psql --quiet --no-psqlrc -v ON_ERROR_STOP=1 <<END
SELECT 'CREATE ROLE $1 LOGIN' WHERE NOT EXISTS (
    SELECT FROM pg_roles WHERE rolname = '$1') \gexec
ALTER ROLE $1 PASSWORD $(quote_sql "$2");
SELECT 'CREATE DATABASE $1 OWNER $1' WHERE NOT EXISTS (
    SELECT FROM pg_database WHERE datname = '$1') \gexec
END
}

# postgresql_answers NAME PASSWORD [DATABASE]: whether the account can use its
# database.
postgresql_answers() {
    local passwords code=0
    # It reads plain files only, no pipe.
    passwords=$(mktemp)
    printf '*:*:*:%s:%s\n' "$1" "$(quote_pgpass "$2")" > "$passwords"
    (
        if uses_tls; then
            export PGSSLMODE=verify-full PGSSLROOTCERT=$CA
        fi
        PGPASSFILE=$passwords psql --quiet --no-psqlrc --no-password \
            --host="$FIRST_CONTROLLER" --username="$1" --command='SELECT 1' \
            "${3-$1}" > /dev/null 2>&1
    ) || code=$?
    rm "$passwords"
    return "$code"
}

set_up_rabbitmq() {
    local line
    note_stopped rabbitmq-server
    install_packages rabbitmq-server
    renew_certificates
    # Debian lets its user change this directory.
    put_directory rabbitmq:rabbitmq 755 /etc/rabbitmq/conf.d
    for_unit rabbitmq-server put_file rabbitmq:rabbitmq 644 \
        /etc/rabbitmq/conf.d/90-manila-lite.conf <<< "$(rabbitmq_conf)"
    for_unit rabbitmq-server put_file rabbitmq:rabbitmq 644 "$RABBITMQ_HOSTS" \
        <<< "$(rabbitmq_hosts)"
    if [[ ! -e $RABBITMQ_ENV ]]; then
        for_unit rabbitmq-server put_file rabbitmq:rabbitmq 644 \
            "$RABBITMQ_ENV" < /dev/null
    fi
    while read -r line; do
        for_unit rabbitmq-server put_line "$RABBITMQ_ENV" "$line"
    done < <(rabbitmq_env)
    put_epmd_address
    order_boot rabbitmq-server try_until_started
    restart_epmd
    run_server rabbitmq-server
    rabbitmqctl -q await_startup
    if ! prints '^manila$' rabbitmqctl -q list_vhosts --no-table-headers; then
        change 'made the virtual host manila in RabbitMQ' \
            rabbitmqctl -q add_vhost manila
    fi
    make_rabbitmq_account manila "$BROKER_PASSWORD"
    make_rabbitmq_account manila_node "$NODE_BROKER_PASSWORD"
}

# put_epmd_address: what tells rabbitmqctl the port of RabbitMQ, for this
# machine. Systemd listens for it, at all addresses by Debian's unit.
put_epmd_address() {
    local directory=$UNITS/epmd.socket.d
    if [[ ! -d $directory ]]; then
        put_directory root:root 755 "$directory"
    fi
    for_unit rabbitmq-server put_file root:root 644 "$directory/$BOOT_ORDER" <<END
# Written by deploy.
[Socket]
ListenStream=
ListenStream=127.0.0.1:4369
END
}

# restart_epmd: if RabbitMQ, which it then does not know, will be restarted.
restart_epmd() {
    if ! was_started_with rabbitmq-server restart || checks; then
        return 0
    fi
    systemctl daemon-reload
    if systemctl --quiet is-active epmd.socket; then
        systemctl stop epmd.socket epmd.service
        systemctl start epmd.socket
    fi
}

# make_rabbitmq_account NAME PASSWORD: which uses the virtual host manila only.
make_rabbitmq_account() {
    if ! prints "^${1}[[:space:]]" \
            rabbitmqctl -q list_users --no-table-headers; then
        change "made the account $1 in RabbitMQ" \
            quietly rabbitmqctl -q add_user "$1" <<< "$2"
    elif ! rabbitmqctl -q authenticate_user "$1" <<< "$2" > /dev/null 2>&1; then
        change "set the password of $1 in RabbitMQ" \
            quietly rabbitmqctl -q change_password "$1" <<< "$2"
    fi
    if ! prints "^${1}[[:space:]]" \
            rabbitmqctl -q list_permissions -p manila --no-table-headers; then
        change "let $1 use the virtual host manila in RabbitMQ" \
            rabbitmqctl -q set_permissions -p manila "$1" '.*' '.*' '.*'
    fi
}

set_up_redis() {
    install_packages redis-server
    renew_certificates
    for_unit redis-server put_file redis:redis 640 \
        /etc/redis/manila-lite.conf <<< "$(redis_conf)"
    for_unit redis-server put_line /etc/redis/redis.conf \
        'include /etc/redis/manila-lite.conf'
    order_boot redis-server try_until_started
    run_server redis-server
}

# Remove accounts, databases and queues, with all that they contain.
purge_servers() {
    if [[ $OWN_DATABASE == yes ]]; then
        purge_account manila
        purge_login manila_controller
        purge_login manila_node
        if [[ $OWN_KEYSTONE == yes ]]; then
            purge_account keystone
        fi
    fi
    if [[ $OWN_BROKER == yes ]]; then
        purge_broker
    fi
}

purge_broker() {
    # A removal has stopped it.
    note_stopped rabbitmq-server
    if ! systemctl --quiet is-active rabbitmq-server; then
        systemctl start rabbitmq-server
    fi
    rabbitmqctl -q await_startup
    if prints '^manila$' rabbitmqctl -q list_vhosts --no-table-headers; then
        rabbitmqctl -q delete_vhost manila
        changed 'removed the virtual host manila'
    fi
    local name
    for name in manila manila_node; do
        if prints "^${name}[[:space:]]" \
                rabbitmqctl -q list_users --no-table-headers; then
            rabbitmqctl -q delete_user "$name"
            changed "removed the account $name from RabbitMQ"
        fi
    done
}

# close_servers: let the servers listen where they did before the set-up. What
# they contain stays.
close_servers() {
    close_mariadb
    close_postgresql
    close_redis
    if [[ $OWN_BROKER == yes ]]; then
        close_rabbitmq
    fi
}

close_mariadb() {
    for_unit mariadb delete_file \
        /etc/mysql/mariadb.conf.d/90-manila-lite.cnf
    restart_changed mariadb
}

close_postgresql() {
    local etc name type
    delete_boot_order postgresql@
    for etc in /etc/postgresql/*/main; do
        if [[ ! -d $etc ]]; then
            continue
        fi
        for name in manila manila_controller manila_node keystone; do
            for type in host hostssl; do
                for_unit postgresql delete_line "$etc/pg_hba.conf" \
                    "$(hba_line "$type" "$name")"
            done
        done
        # As its owner, who may have made links.
        act_for "$etc/conf.d"
        if "${AS[@]}" test -e "$etc/conf.d/manila-lite.conf"; then
            for_unit postgresql note_reader
            "${AS[@]}" rm "$etc/conf.d/manila-lite.conf"
            changed "removed $etc/conf.d/manila-lite.conf"
        fi
    done
    restart_changed postgresql
}

# close_redis: what it listens at, and its password.
close_redis() {
    delete_boot_order redis-server
    for_unit redis-server delete_line /etc/redis/redis.conf \
        'include /etc/redis/manila-lite.conf'
    for_unit redis-server delete_file /etc/redis/manila-lite.conf \
        /etc/redis/manila-lite.conf.*~
    restart_changed redis-server
}

# close_rabbitmq: it listens on all addresses, as Debian's package wants. The
# set-up did not change that, but may have been the first to start it.
close_rabbitmq() {
    if ! was_stopped rabbitmq-server \
            && systemctl --quiet is-active rabbitmq-server; then
        echo 'Kept rabbitmq-server running: it is not noted that' \
            'deploy/controller started it.'
    fi
    delete_boot_order rabbitmq-server
    local line
    for_unit rabbitmq-server delete_file "$RABBITMQ_HOSTS" \
        /etc/rabbitmq/conf.d/90-manila-lite.conf
    while read -r line; do
        for_unit rabbitmq-server delete_line "$RABBITMQ_ENV" "$line"
    done < <(rabbitmq_env)
    for_unit rabbitmq-server delete_file "$UNITS/epmd.socket.d/$BOOT_ORDER"
    if [[ -d $UNITS/epmd.socket.d ]]; then
        rmdir --ignore-fail-on-non-empty "$UNITS/epmd.socket.d"
    fi
    restart_epmd
    stop_again rabbitmq-server
    restart_changed rabbitmq-server
}

# purge_account NAME: remove it from the database server, with its database.
purge_account() {
    local found
    found=$(find_account "$1")
    if [[ -z $found ]]; then
        return
    fi
    case $DATABASE in
        mariadb)
            mariadb <<< "DROP DATABASE IF EXISTS $1;
                DROP USER IF EXISTS $1@'%';"
            ;;
        postgresql)
            runuser -u postgres -- psql --quiet --no-psqlrc \
                -v ON_ERROR_STOP=1 <<END
DROP DATABASE IF EXISTS $1 WITH (FORCE);
DROP ROLE IF EXISTS $1;
END
            ;;
    esac
    changed "removed the database $1"
}

# purge_login NAME: an account without a database, after that which it used.
purge_login() {
    if [[ -z $(find_account "$1") ]]; then
        return
    fi
    case $DATABASE in
        mariadb) mariadb <<< "DROP USER IF EXISTS $1@'%';" ;;
        postgresql)
            administer_postgresql postgres <<< "DROP ROLE IF EXISTS $1;"
            ;;
    esac
    changed "removed the account $1"
}

# find_account NAME: print something if it or its database exists.
find_account() {
    case $DATABASE in
        mariadb)
            mariadb --skip-column-names <<END
SELECT 1 FROM information_schema.schemata WHERE schema_name = '$1'
UNION SELECT 1 FROM mysql.user WHERE user = '$1';
END
            ;;
        postgresql)
            runuser -u postgres -- psql --quiet --no-psqlrc --tuples-only <<END
SELECT 1 FROM pg_database WHERE datname = '$1'
UNION SELECT 1 FROM pg_roles WHERE rolname = '$1';
END
            ;;
    esac
}
