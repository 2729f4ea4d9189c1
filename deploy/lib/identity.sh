# Sign-in by tokens of Keystone: one of our own on the first controller, or
# one that exists already.
# shellcheck shell=bash disable=SC2153

KEYSTONE_VENV=/opt/keystone
KEYSTONE_ETC=/etc/keystone
KEYSTONE_STATE=/var/lib/keystone
# Not newer ones, which may need other settings.
KEYSTONE_PACKAGES=('keystone>=30.0.0,<31' 'gunicorn>=27.0.1,<28'
    'PyMySQL>=1.2.4' 'psycopg2-binary>=2.9.13')

uses_keystone() {
    [[ $AUTH == keystone ]]
}

# own_keystone: set whether Keystone is one of our own.
own_keystone() {
    OWN_KEYSTONE=no
    if uses_keystone && [[ -z $KEYSTONE_AUTH_URL ]]; then
        OWN_KEYSTONE=yes
    fi
}

# use_identity: set the URLs that local.conf does not give.
use_identity() {
    local at=$FIRST_CONTROLLER scheme=http database
    own_keystone
    # Share and data services do not talk to Keystone.
    if ! uses_keystone || has_node_secrets; then
        return 0
    fi
    [[ -n ${KEYSTONE_PASSWORD:-} && -n ${KEYSTONE_DATABASE_PASSWORD:-} ]] \
        || die "copy $SECRETS from $at again: it has no KEYSTONE_PASSWORD"
    if [[ $OWN_KEYSTONE == no ]]; then
        KEYSTONE_AUTH_URL=${KEYSTONE_AUTH_URL%/}
        KEYSTONE_AUTH_URL=${KEYSTONE_AUTH_URL%/v3}/v3
        KEYSTONE_INTERNAL_URL=$KEYSTONE_AUTH_URL
        return
    fi
    if [[ -n $TLS_CERTIFICATE ]]; then
        scheme=https
    fi
    KEYSTONE_AUTH_URL=$scheme://$API_ADDRESS:$KEYSTONE_PORT/v3
    # As the API itself, it is reached by nodes and the proxies only.
    KEYSTONE_INTERNAL_URL=http://$at:$KEYSTONE_LOCAL_PORT/v3
    if uses_tls; then
        KEYSTONE_INTERNAL_URL=https://$at:$KEYSTONE_LOCAL_PORT/v3
    fi
    case $DATABASE in
        mariadb) database=mysql+pymysql ;;
        postgresql) database=postgresql+psycopg2 ;;
    esac
    database+=://keystone:$(quote_url "$KEYSTONE_DATABASE_PASSWORD")
    database+=@$at/keystone$(database_tls)
    : "${KEYSTONE_DATABASE_URL:=$database}"
}

# keystone_conf: print its configuration.
keystone_conf() {
    cat <<END
# Written by deploy: changes are lost.

[database]
connection = $(quote_option "$KEYSTONE_DATABASE_URL")

[fernet_tokens]
key_repository = $KEYSTONE_ETC/fernet-keys

[fernet_receipts]
key_repository = $KEYSTONE_ETC/fernet-keys

[credential]
key_repository = $KEYSTONE_ETC/credential-keys

[oslo_middleware]
# Only nodes and the proxy reach it; the proxy overwrites what clients send.
enable_proxy_headers_parsing = true
END
}

# gunicorn_conf: print the settings of its web server. Keystone would take
# arguments of the command for its own, so there are none.
gunicorn_conf() {
    cat <<END
# Written by deploy: changes are lost.
wsgi_app = 'keystone.wsgi.api:application'
bind = '$(local_address):$KEYSTONE_LOCAL_PORT'
workers = 2
threads = 4
# A wrong configuration then fails at the start.
preload_app = True
control_socket_disable = True
END
}

# keystone_manage ARGUMENT...: run keystone-manage as the user of Keystone.
keystone_manage() {
    runuser -u keystone -- "$KEYSTONE_VENV/bin/keystone-manage" \
        --config-file "$KEYSTONE_ETC/keystone.conf" "$@"
}

# set_up_keystone: on the first controller, unless another one is named.
set_up_keystone() {
    if [[ $OWN_KEYSTONE != yes ]] || ! is_first_controller; then
        return 0
    fi
    add_keystone_user
    install_keystone
    put_directory root:keystone 750 "$KEYSTONE_ETC"
    put_file root:keystone 640 "$KEYSTONE_ETC/keystone.conf" \
        <<< "$(keystone_conf)"
    put_file root:keystone 640 "$KEYSTONE_ETC/gunicorn.conf.py" \
        <<< "$(gunicorn_conf)"
    put_unit_files "$DEPLOY/../$UNIT_FILES" manila-lite-keystone
    if [[ $OWN_DATABASE == yes ]]; then
        "make_${DATABASE}_account" keystone "$KEYSTONE_DATABASE_PASSWORD"
    fi
    if ! keystone_manage db_sync --check > /dev/null 2>&1; then
        if [[ $OWN_DATABASE == yes ]] && has_schema keystone; then
            back_up before-migration
        fi
        change 'migrated the database of Keystone' migrate_keystone
    fi
    make_keystone_keys fernet
    make_keystone_keys credential
    run_unit manila-lite-keystone "$(< "$KEYSTONE_VENV/.deployed")" \
        "$KEYSTONE_ETC/keystone.conf" "$KEYSTONE_ETC/gunicorn.conf.py"
}

migrate_keystone() {
    keystone_manage db_sync > /dev/null 2>&1 || keystone_manage db_sync
}

add_keystone_user() {
    if ! getent passwd keystone > /dev/null; then
        change 'added the user keystone' \
            useradd --system --home-dir "$KEYSTONE_STATE" --no-create-home \
            --shell /usr/sbin/nologin keystone
    fi
}

# install_keystone: into a virtual environment of its own, because its
# libraries may have to be others than those of the share service.
install_keystone() {
    local wanted
    wanted=$(printf '%s\n' "$(python3 --version)" "${KEYSTONE_PACKAGES[@]}")
    if [[ -e $KEYSTONE_VENV/.deployed \
            && $(< "$KEYSTONE_VENV/.deployed") == "$wanted" ]]; then
        return 0
    fi
    change "installed Keystone into $KEYSTONE_VENV" fill_keystone "$wanted"
}

# fill_keystone TEXT: install it, and note what it is.
fill_keystone() (
    umask 022
    python3 -m venv "$KEYSTONE_VENV"
    "$KEYSTONE_VENV/bin/pip" install --quiet --upgrade "${KEYSTONE_PACKAGES[@]}"
    printf '%s\n' "$1" > "$KEYSTONE_VENV/.deployed"
)

# make_keystone_keys KIND: keys of tokens (fernet), or of credentials.
make_keystone_keys() {
    local keys=$KEYSTONE_ETC/$1-keys
    put_directory keystone:keystone 700 "$keys"
    if [[ -e $keys/0 ]]; then
        return
    fi
    change "made keys in $keys" fill_keystone_keys "$1"
}

fill_keystone_keys() {
    keystone_manage "$1_setup" --keystone-user keystone \
        --keystone-group keystone > /dev/null 2>&1
}

# identity VERB...: identity.py as the administrator of Keystone.
identity() {
    local trusted=() url=$KEYSTONE_INTERNAL_URL authorities
    authorities=$(keystone_authorities)
    if [[ -n $authorities ]]; then
        trusted=(--cacert "$authorities")
    fi
    if uses_tls && [[ $OWN_KEYSTONE == yes ]] && is_first_controller; then
        # Before the proxy is set up.
        url=http://127.0.0.1:$KEYSTONE_LOCAL_PORT/v3
    fi
    "$(program)/bin/python" "$DEPLOY/lib/identity.py" \
        "${trusted[@]}" \
        "$url" "$ADMIN_USER" "$ADMIN_PROJECT" "$@" \
        <<< "$ADMIN_PASSWORD"$'\n'"$KEYSTONE_PASSWORD"
}

# register_service: the administrator of a new Keystone, the user of the
# service, and the entries of the catalog.
register_service() {
    if [[ -z $ADMIN_PASSWORD ]] || ! is_first_controller; then
        return 0
    fi
    local code=0 lines line
    identity token > /dev/null 2>&1 || code=$?
    if [[ $code == 0 && $OWN_KEYSTONE == yes \
            && $(cat "$KEYSTONE_ETC/internal_url" 2> /dev/null) \
                != "$KEYSTONE_INTERNAL_URL" ]]; then
        # The API validates tokens there, which is in the catalog.
        code=3
    fi
    if [[ $code == 3 && $OWN_KEYSTONE == yes ]]; then
        change "made the administrator $ADMIN_USER in Keystone" \
            bootstrap_keystone
        put_file root:root 600 "$KEYSTONE_ETC/internal_url" \
            <<< "$KEYSTONE_INTERNAL_URL"
    elif [[ $code != 0 ]]; then
        identity token > /dev/null || die 'Keystone at' \
            "$KEYSTONE_INTERNAL_URL does not accept $ADMIN_USER with the" \
            "ADMIN_PASSWORD in $SECRETS"
    fi
    if checks; then
        # It can only be asked to correct its entries.
        return 0
    fi
    lines=$(identity register "$KEYSTONE_USER" "$KEYSTONE_PROJECT" \
        "$REGION" "$(api_url)/v2")
    if [[ -n $lines ]]; then
        while read -r line; do
            changed "$line"
        done <<< "$lines"
    fi
}

bootstrap_keystone() {
    # Only root and its user can see the environment of a process.
    OS_BOOTSTRAP_PASSWORD=$ADMIN_PASSWORD keystone_manage bootstrap \
        --bootstrap-username "$ADMIN_USER" \
        --bootstrap-project-name "$ADMIN_PROJECT" \
        --bootstrap-region-id "$REGION" \
        --bootstrap-public-url "$KEYSTONE_AUTH_URL" \
        --bootstrap-internal-url "$KEYSTONE_INTERNAL_URL" \
        > /dev/null 2>&1
}

# keystone_authtoken_conf: print what the API needs to validate tokens.
keystone_authtoken_conf() {
    cat <<END

[keystone_authtoken]
www_authenticate_uri = $KEYSTONE_AUTH_URL
auth_url = $KEYSTONE_INTERNAL_URL
auth_type = password
username = $(quote_option "$KEYSTONE_USER")
project_name = $KEYSTONE_PROJECT
user_domain_id = default
project_domain_id = default
region_name = $REGION
service_token_roles = service
service_token_roles_required = true
# Each controller has a cache of its own. What it keeps is encrypted.
memcached_servers = 127.0.0.1:11211
memcache_security_strategy = ENCRYPT
END
    local authorities
    authorities=$(keystone_authorities)
    if [[ -n $authorities ]]; then
        echo "cafile = $authorities"
    fi
}

# keystone_secret_conf: print what of it only root and the API may read.
keystone_secret_conf() {
    cat <<END

[keystone_authtoken]
password = $(quote_option "$KEYSTONE_PASSWORD")
memcache_secret_key = $TOKEN_KEY
END
}

# keystone_authorities: print the file of those that Keystone is verified with.
keystone_authorities() {
    if uses_tls && [[ $OWN_KEYSTONE == yes ]]; then
        echo "$CA"
    elif [[ -n $TLS_CACERT ]]; then
        echo "$CACERT"
    fi
}

delete_keystone() {
    delete_units manila-lite-keystone
    # Its keys stay with its database.
    delete_file "$KEYSTONE_VENV" "$KEYSTONE_ETC/keystone.conf" \
        "$KEYSTONE_ETC/gunicorn.conf.py"
}
