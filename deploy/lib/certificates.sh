# TLS between the nodes: from services to database, broker and locks, and from
# the proxies to the APIs and Keystone of controllers.
# shellcheck shell=bash disable=SC2153

# Not in ETC, where the users of servers cannot go.
TLS=/etc/manila_lite-tls
# The authority that has issued the certificates of all controllers.
CA=$TLS/ca.pem
RENEW=$TLS/renew
RENEW_UNIT=manila-lite-certificates

uses_tls() {
    [[ $INTERNAL_TLS != no ]]
}

# make_ca: on the first controller, unless the operator has certificates.
make_ca() {
    if ! uses_tls || [[ -n $INTERNAL_CERTIFICATE ]] || ! is_first_controller \
            || grep -q '^CA_KEY=' "$SECRETS"; then
        return 0
    fi
    install_packages openssl
    change "added CA_CERTIFICATE and CA_KEY to $SECRETS" issue_ca
    if checks; then
        CA_CERTIFICATE=unknown
    fi
}

issue_ca() {
    local folder
    folder=$(mktemp -d)
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
        -days 7300 -subj "/CN=manila_lite on $NODE_NAME" \
        -addext 'basicConstraints = critical, CA:TRUE, pathlen:0' \
        -addext 'keyUsage = critical, keyCertSign, cRLSign' \
        -keyout "$folder/key" -out "$folder/certificate" 2> /dev/null
    # Both at once, as one is of no use without the other.
    printf 'CA_CERTIFICATE=%s\nCA_KEY=%s\n' \
        "$(openssl x509 -in "$folder/certificate" -outform DER | base64 -w 0)" \
        "$(base64 -w 0 "$folder/key")" >> "$SECRETS"
    rm -r "$folder"
}

# put_ca: what every node verifies servers with.
put_ca() {
    local text
    uses_tls || return 0
    if [[ -n $INTERNAL_CACERT ]]; then
        check_authorities INTERNAL_CACERT
        text=$(< "$INTERNAL_CACERT")
    elif [[ -n ${CA_CERTIFICATE:-} ]]; then
        text=$(printf '%s\n' '-----BEGIN CERTIFICATE-----' \
            "$(fold -w 64 <<< "$CA_CERTIFICATE")" '-----END CERTIFICATE-----')
    else
        die "copy the secrets from $FIRST_CONTROLLER again, as for a new node:" \
            "$SECRETS has no CA_CERTIFICATE"
    fi
    put_directory root:root 755 "$TLS"
    put_file root:root 644 "$CA" <<< "$text"
}

# check_authorities VARIABLE: stop unless it names a file of certificates only.
check_authorities() {
    local file=${!1}
    [[ -f $file ]] || die "$1 must name a PEM file with the certificate of a" \
        "CA: $file is not a file"
    if grep -q 'PRIVATE KEY-----' "$file"; then
        die "$1 must name a file of certificates only: $file contains a" \
            'private key'
    fi
    python3 -I -c 'import ssl, sys
ssl.create_default_context(cafile=sys.argv[1])' "$file" 2> /dev/null \
        || die "$1 must name a PEM file with the certificate of a CA: $file" \
            'contains none'
}

# set_up_certificates: what renews those of this controller, and the units that
# run it.
set_up_certificates() {
    local before=$CHANGES unit
    if ! uses_tls && [[ -z $TLS_CERTIFICATE ]]; then
        delete_renewal
        return
    fi
    install_packages openssl
    put_directory root:root 755 "$TLS"
    put_ca
    put_file root:root 600 "$TLS/settings" <<< "$(certificate_settings)"
    put_file root:root 755 "$RENEW" < "$DEPLOY/lib/renew-certificates"
    put_file root:root 644 "$UNITS/$RENEW_UNIT.service" <<< "$(renewal_service)"
    put_file root:root 644 "$UNITS/$RENEW_UNIT.path" <<< "$(renewal_path)"
    put_file root:root 644 "$UNITS/$RENEW_UNIT.timer" <<< "$(renewal_timer)"
    if ((CHANGES > before)); then
        act systemctl daemon-reload
    fi
    for unit in "$RENEW_UNIT.path" "$RENEW_UNIT.timer"; do
        # It may watch other files.
        if ((CHANGES > before)) && systemctl --quiet is-active "$unit"; then
            act systemctl restart "$unit"
        fi
        start_unit "$unit"
    done
}

# renew_certificates: give them to servers of this controller that have none.
renew_certificates() {
    local lines line
    if ! uses_tls || checks; then
        return 0
    fi
    lines=$("$RENEW")
    if [[ -n $lines ]]; then
        while read -r line; do
            changed "$line"
        done <<< "$lines"
    fi
}

# certificate_settings: print what the renewal has to know.
certificate_settings() {
    local names=() readers=(haproxy)
    if uses_tls; then
        names=("$NODE_IP")
    fi
    if is_first_controller; then
        if [[ $OWN_DATABASE == yes && $DATABASE == mariadb ]]; then
            readers+=(mysql)
        elif [[ $OWN_DATABASE == yes ]]; then
            readers+=(postgres)
        fi
        if [[ $OWN_BROKER == yes ]]; then
            readers+=(rabbitmq)
        fi
        if [[ $OWN_LOCKS == yes ]]; then
            readers+=(redis)
        fi
    fi
    echo '# Written by deploy.'
    echo "NAMES=(${names[*]@Q})"
    echo "READERS=(${readers[*]@Q})"
    printf '%s=%q\n' SECRETS "$SECRETS" REDIS_ADDRESS "$NODE_IP" \
        CERTIFICATE "$INTERNAL_CERTIFICATE" \
        PROXY_CERTIFICATE "$TLS_CERTIFICATE"
}

renewal_service() {
    cat <<END
# Written by deploy.
[Unit]
Description=manila_lite: let servers read certificates that are renewed
# A file may be written in parts.
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=$RENEW
PrivateTmp=true
END
}

renewal_path() {
    local path
    cat <<END
# Written by deploy.
[Unit]
Description=manila_lite: certificates of the operator

[Path]
END
    # Those of the CA change only when they are renewed.
    for path in "$TLS/settings" "$TLS_CERTIFICATE" "$INTERNAL_CERTIFICATE"; do
        if [[ -n $path ]]; then
            echo "PathChanged=$path"
        fi
    done
    cat <<END

[Install]
WantedBy=multi-user.target
END
}

renewal_timer() {
    cat <<END
# Written by deploy.
[Unit]
Description=manila_lite: look for certificates that end soon

[Timer]
OnCalendar=daily
RandomizedDelaySec=1h
Persistent=true

[Install]
WantedBy=timers.target
END
}

delete_renewal() {
    local unit before=$CHANGES
    for unit in "$RENEW_UNIT".{path,timer}; do
        if [[ -e $UNITS/$unit ]]; then
            act systemctl disable --now "$unit"
        fi
    done
    delete_file "$UNITS/$RENEW_UNIT".{path,timer,service} "$RENEW"
    if ((CHANGES > before)); then
        act systemctl daemon-reload
    fi
}

# proxy_tls NAME: print how HAProxy reaches a node of this name: it shows the
# certificate of this one, and verifies the other.
proxy_tls() {
    echo "ssl crt $TLS/haproxy.pem ca-file $CA verify required verifyhost $1"
}
