# The texts of configuration files. Functions print; nothing is changed here.
# shellcheck shell=bash

# service_conf [ROLE...]: print all options of a node with these roles, for
# services that read one file.
service_conf() {
    local account=${1:-share}
    plain_conf "$@"
    printf '\n'
    if [[ " $* " == *' controller '* ]]; then
        account=controller
    fi
    server_conf "$account"
    if [[ $account == controller ]] && uses_keystone; then
        keystone_secret_conf
    fi
    if ! uses_keystone; then
        # Where put_conf writes it for them.
        printf '\n[http_basic]\ntoken_key_file = %s\n' "$TOKEN_KEY_FILE"
    fi
    extra_secrets
    extra_conf
}

# plain_conf [ROLE...]: print manila_lite.conf for a node with these roles,
# without passwords and without EXTRA_CONF.
plain_conf() {
    local role name
    cat <<END
# Written by deploy: changes are lost. What local.conf has no variable for
# stands in the file that its EXTRA_CONF names.

[DEFAULT]
host = $NODE_NAME
my_ip = $NODE_IP
state_path = $STATE
log_dir = $LOGS
auth_strategy = $AUTH
osapi_share_listen = $(local_address)
osapi_share_listen_port = $API_LOCAL_PORT
default_share_type = $SHARE_TYPE
enabled_share_protocols = $PROTOCOLS
# Longer than the proxy takes to see that the health check fails
api_drain_time = 5
END
    for role; do
        if [[ $role == share ]]; then
            echo "enabled_share_backends = ${BACKENDS// /,}"
        fi
    done
    cat <<END

[oslo_middleware]
# Only the proxy reaches the API, and it overwrites what clients send.
enable_proxy_headers_parsing = true

[oslo_concurrency]
lock_path = $STATE/lock

[monitoring]
listen = 127.0.0.1
scheduler_port = 8787
share_port = 8788
data_port = 8789
END
    if [[ " $* " == *' controller '* ]] && makes_backups; then
        echo "backup_directory = $BACKUP_DIRECTORY"
    fi
    if uses_tls && [[ $OWN_BROKER == yes ]]; then
        cat <<END

[oslo_messaging_rabbit]
ssl = true
ssl_ca_file = $CA
END
    fi
    if ! uses_keystone; then
        cat <<END

[http_basic]
region = $REGION
END
    fi
    for role; do
        if [[ $role == controller ]] && uses_keystone; then
            keystone_authtoken_conf
        fi
        if [[ $role == share ]]; then
            for name in $BACKENDS; do
                printf '\n[%s]\n%s\n' "$name" "$(backend_options "$name")"
            done
        fi
    done
}

# extra_conf: print what the operator adds.
extra_conf() {
    if [[ -n $EXTRA_CONF ]]; then
        printf '\n# From %s\n' "$EXTRA_CONF"
        cat "$EXTRA_CONF"
    fi
}

# secret_conf ROLE: print the options with passwords that its services read:
# share and data services have an account of their own on controllers, too.
secret_conf() {
    server_conf "$1"
    if [[ $1 == controller ]]; then
        if uses_keystone; then
            keystone_secret_conf
        else
            printf '\n[http_basic]\ntoken_key = %s\n' "$TOKEN_KEY"
        fi
    fi
    extra_secrets
}

# server_conf ROLE: print how its services reach the servers.
server_conf() {
    cat <<END
[DEFAULT]
transport_url = $(quote_option "$(transport_url_of "$1")")

[database]
connection = $(quote_option "$(database_url_of "$1")")

[coordination]
backend_url = $(quote_option "$LOCKS_URL")
END
}

# extra_secrets: print what the operator adds for root and the services only.
extra_secrets() {
    if [[ -n $EXTRA_SECRETS ]]; then
        printf '\n# From %s\n' "$EXTRA_SECRETS"
        cat "$EXTRA_SECRETS"
    fi
}

# local_address: print where API and Keystone of a controller listen: without TLS
# for the proxy of this node only.
local_address() {
    if uses_tls; then
        echo 127.0.0.1
    else
        echo "$NODE_IP"
    fi
}

# admin_openrc: print what lets the official client sign in as administrator.
admin_openrc() {
    echo "# For the official client: source $ETC/admin-openrc"
    printf 'export %s=%q\n' \
        OS_AUTH_TYPE password \
        OS_AUTH_URL "${KEYSTONE_AUTH_URL:-$(api_url)/v3}" \
        OS_USERNAME "$ADMIN_USER" \
        OS_PASSWORD "$ADMIN_PASSWORD" \
        OS_PROJECT_NAME "$ADMIN_PROJECT" \
        OS_USER_DOMAIN_NAME Default \
        OS_PROJECT_DOMAIN_NAME Default \
        OS_REGION_NAME "$REGION"
    if [[ -n $TLS_CACERT ]]; then
        printf 'export %s=%q\n' OS_CACERT "$CACERT"
    fi
}

# redis_conf: print what is added to the configuration of Redis.
redis_conf() {
    cat <<END
# Written by deploy.
bind $(listen_addresses ' ')
requirepass $(quote_word "$LOCKS_PASSWORD")
END
    if uses_tls; then
        printf '%s %s\n' tls-port 6380 tls-cert-file "$TLS/redis.pem" \
            tls-key-file "$TLS/redis.pem" tls-ca-cert-file "$CA" \
            tls-auth-clients no
    fi
    if [[ $INTERNAL_TLS == yes ]]; then
        echo 'port 0'
    fi
}

# rabbitmq_conf: print where RabbitMQ listens.
rabbitmq_conf() {
    echo '# Written by deploy.'
    if [[ $INTERNAL_TLS == yes ]]; then
        echo 'listeners.tcp = none'
    else
        echo 'listeners.tcp.loopback = 127.0.0.1:5672'
    fi
    if [[ $INTERNAL_TLS != yes && $NODE_IP != 127.0.0.1 ]]; then
        echo "listeners.tcp.node = $NODE_IP:5672"
    fi
    if uses_tls; then
        printf '%s = %s\n' listeners.ssl.node "$NODE_IP:5671" \
            ssl_options.cacertfile "$CA" \
            ssl_options.certfile "$TLS/rabbitmq.pem" \
            ssl_options.keyfile "$TLS/rabbitmq.pem" \
            ssl_options.verify verify_none \
            ssl_options.fail_if_no_peer_cert false
    fi
}

# rabbitmq_env: print what keeps its administration on loopback. rabbitmqctl
# reads it, too.
rabbitmq_env() {
    local loopback='inet_dist_use_interface {127,0,0,1}'
    cat <<END
export ERL_EPMD_ADDRESS=127.0.0.1
export ERL_INETRC=$RABBITMQ_HOSTS
SERVER_ADDITIONAL_ERL_ARGS="\$SERVER_ADDITIONAL_ERL_ARGS -kernel $loopback"
END
}

# rabbitmq_hosts: print where Erlang finds RabbitMQ, whose name has the name of
# the machine.
rabbitmq_hosts() {
    cat <<END
{host, {127,0,0,1}, ["$(uname -n)"]}.
{lookup, [file, native]}.
END
}

# try_until_started: print the drop-in of a server that ends if it cannot
# listen at its address. Debian's units start it five times within a second.
try_until_started() {
    cat <<END
# Written by deploy. The address may come after network-online.target, too.
[Unit]
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Restart=always
RestartSec=2
END
}

# wait_for_address: print the drop-in of PostgreSQL, which would go on without
# the address until its next restart.
wait_for_address() {
    local bind='import socket, sys; socket.socket().bind((sys.argv[1], 0))'
    cat <<END
# Written by deploy. The address may come after network-online.target, too.
[Unit]
Wants=network-online.target
After=network-online.target

[Service]
ExecStartPre=/bin/sh -c 'until python3 -I -c "$bind" $NODE_IP 2> /dev/null; \
    do sleep 1; done'
END
}

# backend_options NAME: print what BACKEND_NAME holds, or plain directories.
backend_options() {
    local variable=BACKEND_$1
    if [[ -n ${!variable:-} ]]; then
        printf '%s\n' "${!variable}"
        return
    fi
    cat <<END
share_driver = local
driver_handles_share_servers = false
local_root = /srv/shares/$1
max_over_subscription_ratio = 1.0
END
}

# local_roots: print the directories of back ends with the driver local.
local_roots() {
    local name
    for name in $BACKENDS; do
        backend_options "$name" | sed -n 's/^local_root *= *//p'
    done
}

# proxy_conf ADDRESS: print what HAProxy needs to serve the API there.
proxy_conf() {
    local bind="$1:$API_PORT" scheme=http number=0 controller no_api tls=
    no_api='status 503 content-type application/json string '
    no_api+="'{\"serviceUnavailable\": {\"code\": 503, \"message\": "
    no_api+="\"No API service is available; try again later.\"}}' "
    no_api+='hdr Retry-After 5'
    if [[ -n $TLS_CERTIFICATE ]]; then
        tls=" ssl crt $TLS_CERTIFICATE"
        scheme=https
    fi
    cat <<END
# Written by deploy: changes are lost.
frontend manila_lite
    mode http
    # Also while this node does not have the address: at boot, or because
    # another controller has it.
    bind $bind transparent$tls
    timeout client 2m
    option httplog
    option forwardfor
    # What clients claim about other proxies is not passed on.
    http-request del-header X-Forwarded-For
    http-request del-header X-Forwarded-Host
    http-request del-header X-Forwarded-Prefix
    http-request del-header Forwarded
    http-request set-header X-Forwarded-Proto $scheme
    # While no API is up, clients get what the API itself would answer.
    http-error $no_api
    default_backend manila_lite

backend manila_lite
    mode http
    balance leastconn
    timeout connect 5s
    timeout server 2m
    timeout check 4s
    # A request is repeated on another server only if none has received it.
    option redispatch 1
    retries 3
    # The proxy of another controller says so by 425. It cannot be repeated unless
    # it has been read to its end.
    retry-on conn-failure 425
    option http-buffer-request
    http-response return $no_api if { status 425 }
    option httpchk GET /healthcheck
    http-check expect status 200
    default-server check inter 1s fastinter 500ms downinter 500ms fall 2 rise 1
END
    for controller in $CONTROLLERS; do
        number=$((number + 1))
        echo "    server api-$number $(proxy_server "$controller" \
            "$API_LOCAL_PORT")"
    done
    if uses_tls; then
        inner_proxy_conf
    fi
    if [[ $OWN_KEYSTONE == yes ]]; then
        keystone_proxy_conf "$1" "$tls" "$scheme"
    fi
}

# proxy_server CONTROLLER PORT: print how HAProxy reaches it.
proxy_server() {
    if ! uses_tls; then
        echo "$1:$2"
    elif [[ $1 == "$NODE_IP" ]]; then
        echo "127.0.0.1:$2"
    else
        echo "$1:$2 $(proxy_tls "$1")"
    fi
}

# inner_proxy_conf: print how proxies of other controllers reach the API of this
# one. They show a certificate, as only they may say who the client is.
inner_proxy_conf() {
    cat <<END

frontend manila_lite_node
    mode http
    bind $NODE_IP:$API_LOCAL_PORT transparent ssl crt $TLS/haproxy.pem \
ca-file $CA verify required
    timeout client 2m
    default_backend manila_lite_node

backend manila_lite_node
    mode http
    timeout connect 5s
    timeout server 2m
    # A request that the API has not received may go to another controller. That
    # one has it sooner than a second attempt here, which HAProxy makes after 1 s.
    retries 0
    http-response set-var(txn.answered) bool(true)
    http-after-response set-status 425 \
if { status 503 } !{ var(txn.answered) -m found }
    server api 127.0.0.1:$API_LOCAL_PORT
END
}

# keystone_proxy_conf ADDRESS TLS SCHEME: print how clients reach Keystone.
keystone_proxy_conf() {
    cat <<END

frontend manila_lite_keystone
    mode http
    bind $1:$KEYSTONE_PORT transparent$2
    timeout client 1m
    option httplog
    option forwardfor
    http-request del-header X-Forwarded-For
    http-request del-header X-Forwarded-Host
    http-request del-header X-Forwarded-Prefix
    http-request del-header Forwarded
    http-request set-header X-Forwarded-Proto $3
    default_backend manila_lite_keystone

backend manila_lite_keystone
    mode http
    timeout connect 5s
    timeout server 1m
    option httpchk GET /v3
    http-check expect status 200
    server keystone $(proxy_server "$FIRST_CONTROLLER" "$KEYSTONE_LOCAL_PORT") check
END
    if uses_tls && is_first_controller; then
        cat <<END

frontend manila_lite_keystone_node
    mode http
    bind $NODE_IP:$KEYSTONE_LOCAL_PORT transparent ssl crt $TLS/haproxy.pem
    timeout client 1m
    default_backend manila_lite_keystone
END
    fi
}
