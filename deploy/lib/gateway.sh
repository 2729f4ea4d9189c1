# An NFS gateway of a back end on CephFS, and the Ceph user that it acts as.
# shellcheck shell=bash disable=SC2034,SC2153

GATEWAY_CONF=$ETC/gateway.conf
GATEWAY_UNIT=manila-lite-nfs-gateway
# The compiler builds the guard of NFS file handles.
GATEWAY_PACKAGES=(nfs-ganesha-ceph nfs-ganesha-rados-grace dbus python3-rados
    gcc libc6-dev)

# read_gateway: set what the back end GATEWAY_BACKEND says of its gateways.
read_gateway() {
    local gateways
    [[ $(gateway_option share_driver) == cephfs ]] \
        || die "BACKEND_$GATEWAY_BACKEND must have share_driver = cephfs"
    gateways=$(gateway_option cephfs_nfs_gateways)
    [[ ",${gateways// /}," == *",$GATEWAY_ADDRESS,"* ]] \
        || die "cephfs_nfs_gateways of BACKEND_$GATEWAY_BACKEND must name" \
            "$GATEWAY_ADDRESS, not only ${gateways:-nothing}"
    GATEWAY_USER=$(gateway_option cephfs_nfs_auth_id)
    : "${GATEWAY_USER:=manila_lite_nfs}"
    GATEWAY_CEPH=$(gateway_option cephfs_conf_path)
    : "${GATEWAY_CEPH:=/etc/ceph/ceph.conf}"
    GATEWAY_KEYRING=$(gateway_option cephfs_nfs_keyring_path)
    : "${GATEWAY_KEYRING:=/etc/ceph/ceph.client.$GATEWAY_USER.keyring}"
}

# gateway_option NAME: print an option of the back end, if it is there.
gateway_option() {
    backend_options "$GATEWAY_BACKEND" | sed -n "s/^$1 *= *//p"
}

gateway_conf() {
    cat <<END
# Written by deploy: changes are lost.

[$GATEWAY_BACKEND]
$(backend_options "$GATEWAY_BACKEND")
END
}

# gateway_unit FILE: print the unit for the one gateway of this machine.
gateway_unit() {
    sed -e "s/%i/$GATEWAY_ADDRESS/" \
        -e "s/ --backend ceph / --backend $GATEWAY_BACKEND /" \
        -e "s|$CONF|$GATEWAY_CONF|" "$1"
}

# gateway_caps POOL: print the least that the Ceph user of gateways needs.
gateway_caps() {
    local osd="allow r pool=$1 namespace=manila_lite"
    osd+=", allow rw pool=$1 namespace=manila_lite_nfs"
    printf '%s\n' mon 'allow r' osd "$osd"
}

# put_gateway_key: make the Ceph user, if this machine has the keyring of an
# administrator; the keyring of the user may also come from another machine.
put_gateway_key() {
    local pool caps text command
    [[ -f $GATEWAY_CEPH ]] \
        || die "copy the configuration of the cluster to $GATEWAY_CEPH"
    if [[ -f $GATEWAY_KEYRING ]]; then
        return
    fi
    if checks; then
        changed "wrote $GATEWAY_KEYRING"
        return
    fi
    pool=$(records_pool 2> /dev/null) || pool=
    mapfile -t caps < <(gateway_caps "${pool:-POOL}")
    command=(auth get-or-create "client.$GATEWAY_USER" "${caps[@]}")
    text=
    if [[ -n $pool ]]; then
        text=$(ceph --conf "$GATEWAY_CEPH" "${command[@]}" 2> /dev/null) \
            || text=
    fi
    if [[ -z $text ]]; then
        die "$GATEWAY_KEYRING does not exist. Copy it here with mode 0600, as" \
            'this command prints it to an administrator of the cluster:' \
            "ceph$(printf " '%s'" "${command[@]}")"
    fi
    put_file root:root 600 "$GATEWAY_KEYRING" <<< "$text"
}

# records_pool: print the pool that has the records of the back end.
records_pool() {
    local pool
    pool=$(gateway_option cephfs_records_pool)
    if [[ -n $pool ]]; then
        echo "$pool"
        return
    fi
    ceph --conf "$GATEWAY_CEPH" --connect-timeout 20 fs ls --format json \
        | python3 -I -c '
import json, sys
name = sys.argv[1]
found = [one for one in json.load(sys.stdin) if name in ("", one["name"])]
(one,) = found
print(one["data_pools"][0])' "$(gateway_option cephfs_filesystem_name)"
}

# stop_other_ganesha: Debian starts one of its own, which takes the port.
stop_other_ganesha() {
    if unit_is_on nfs-ganesha; then
        change 'stopped nfs-ganesha' systemctl disable --now nfs-ganesha
    fi
}

# build_guard: what keeps clients that make up NFS file handles in their share.
build_guard() {
    local before path
    if checks; then
        # Only the program knows it.
        return 0
    fi
    before=$(find /usr/local/lib/manila-lite -type f 2> /dev/null || true)
    path=$("$PROGRAM/bin/manila-lite-manage" storage build-guard \
        --driver cephfs)
    if ! grep -qxF -e "$path" <<< "$before"; then
        changed "built $path"
    fi
}
