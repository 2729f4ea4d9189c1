# Database, broker and locks on the first controller, with an account each.
# Not used where local.conf names servers by URL.
# shellcheck shell=bash

# use_servers: set the URLs that local.conf does not give.
use_servers() {
    local scheme account=manila:$DATABASE_PASSWORD at=$FIRST_CONTROLLER
    case $DATABASE in
        mariadb) scheme=mysql+pymysql ;;
        postgresql) scheme=postgresql+psycopg2 ;;
    esac
    OWN_DATABASE=${DATABASE_URL:-yes}
    OWN_BROKER=${TRANSPORT_URL:-yes}
    OWN_LOCKS=${LOCKS_URL:-yes}
    : "${DATABASE_URL:=$scheme://$account@$at/manila}"
    : "${TRANSPORT_URL:=rabbit://manila:$BROKER_PASSWORD@$at:5672/manila}"
    : "${LOCKS_URL:=redis://:$LOCKS_PASSWORD@$at:6379}"
}

set_up_servers() {
    is_first_controller || return 0
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

set_up_mariadb() {
    install_packages mariadb-server
    put_file root:root 644 /etc/mysql/mariadb.conf.d/90-manila-lite.cnf <<END
# Written by deploy.
[mariadbd]
bind-address = $(listen_addresses ,)
max_connections = 500
END
    if [[ $DID == yes ]]; then
        restart_unit mariadb
    fi
    start_unit mariadb
    if mariadb_answers; then
        return
    fi
    mariadb <<END
CREATE DATABASE IF NOT EXISTS manila CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS manila@'%';
ALTER USER manila@'%' IDENTIFIED BY '$DATABASE_PASSWORD';
GRANT ALL PRIVILEGES ON manila.* TO manila@'%';
END
    changed 'made the account manila in MariaDB'
}

# mariadb_answers: whether the account can use its database.
mariadb_answers() {
    mariadb --defaults-extra-file=<(printf '[client]\npassword=%s\n' \
        "$DATABASE_PASSWORD") --host="$FIRST_CONTROLLER" --user=manila \
        --execute='SELECT 1' manila > /dev/null 2>&1
}

set_up_postgresql() {
    install_packages postgresql
    local etc
    etc=$(echo /etc/postgresql/*/main)
    [[ -d $etc ]] || die "expected one cluster of PostgreSQL, found $etc"
    local restart=no
    put_file postgres:postgres 644 "$etc/conf.d/manila-lite.conf" <<END
# Written by deploy.
listen_addresses = '$(listen_addresses ,)'
max_connections = 500
END
    if [[ $DID == yes ]]; then
        restart=yes
    fi
    put_line "$etc/pg_hba.conf" \
        'host manila manila all scram-sha-256 # manila_lite'
    if [[ $DID == yes ]]; then
        restart=yes
    fi
    if [[ $restart == yes ]]; then
        restart_unit postgresql
    fi
    start_unit postgresql
    if postgresql_answers; then
        return
    fi
    runuser -u postgres -- psql --quiet --no-psqlrc -v ON_ERROR_STOP=1 <<END
SELECT 'CREATE ROLE manila LOGIN' WHERE NOT EXISTS (
    SELECT FROM pg_roles WHERE rolname = 'manila') \gexec
ALTER ROLE manila PASSWORD '$DATABASE_PASSWORD';
SELECT 'CREATE DATABASE manila OWNER manila' WHERE NOT EXISTS (
    SELECT FROM pg_database WHERE datname = 'manila') \gexec
END
    changed 'made the account manila in PostgreSQL'
}

postgresql_answers() {
    PGPASSFILE=<(printf '*:*:*:manila:%s\n' "$DATABASE_PASSWORD") \
        psql --quiet --no-psqlrc --no-password --host="$FIRST_CONTROLLER" \
        --username=manila --command='SELECT 1' manila > /dev/null 2>&1
}

set_up_rabbitmq() {
    install_packages rabbitmq-server
    start_unit rabbitmq-server
    rabbitmqctl -q await_startup
    if ! rabbitmqctl -q list_vhosts --no-table-headers | grep -qx manila; then
        rabbitmqctl -q add_vhost manila
        changed 'made the virtual host manila in RabbitMQ'
    fi
    if ! rabbitmqctl -q list_users --no-table-headers \
            | grep -q '^manila[[:space:]]'; then
        rabbitmqctl -q add_user manila <<< "$BROKER_PASSWORD" > /dev/null
        changed 'made the account manila in RabbitMQ'
    elif ! rabbitmqctl -q authenticate_user manila \
            <<< "$BROKER_PASSWORD" > /dev/null 2>&1; then
        rabbitmqctl -q change_password manila <<< "$BROKER_PASSWORD" \
            > /dev/null
        changed 'set the password of manila in RabbitMQ'
    fi
    if ! rabbitmqctl -q list_permissions -p manila --no-table-headers \
            | grep -q '^manila[[:space:]]'; then
        rabbitmqctl -q set_permissions -p manila manila '.*' '.*' '.*'
        changed 'let manila use its virtual host in RabbitMQ'
    fi
}

set_up_redis() {
    install_packages redis-server
    local restart=no
    put_file redis:redis 640 /etc/redis/manila-lite.conf <<END
# Written by deploy.
bind $(listen_addresses ' ')
requirepass $LOCKS_PASSWORD
END
    if [[ $DID == yes ]]; then
        restart=yes
    fi
    put_line /etc/redis/redis.conf 'include /etc/redis/manila-lite.conf'
    if [[ $DID == yes ]]; then
        restart=yes
    fi
    if [[ $restart == yes ]]; then
        restart_unit redis-server
    fi
    start_unit redis-server
}

# Remove accounts, databases and queues, with all that they contain.
purge_servers() {
    if [[ $OWN_DATABASE == yes ]]; then
        case $DATABASE in
            mariadb)
                mariadb <<< "DROP DATABASE IF EXISTS manila;
                    DROP USER IF EXISTS manila@'%';"
                ;;
            postgresql)
                runuser -u postgres -- psql --quiet --no-psqlrc <<END
DROP DATABASE IF EXISTS manila WITH (FORCE);
DROP ROLE IF EXISTS manila;
END
                ;;
        esac
        changed 'removed the database manila'
    fi
    if [[ $OWN_BROKER == yes ]]; then
        rabbitmqctl -q delete_vhost manila || true
        rabbitmqctl -q delete_user manila || true
        changed 'removed the virtual host manila'
    fi
    if [[ $OWN_LOCKS == yes ]]; then
        delete_line /etc/redis/redis.conf 'include /etc/redis/manila-lite.conf'
        if [[ $DID == yes ]]; then
            delete_file /etc/redis/manila-lite.conf
            restart_unit redis-server
        fi
    fi
}
