# The nodes of tools/test-deploy, set up and upgraded by the role in deploy/ansible:
# sourced by it with WITH=ansible. Nodes are reached by SSH.
# shellcheck shell=bash disable=SC2153

CONTROL=$WORK/control/root/manila_lite

# bring_checkout: what the machine has from which Ansible runs.
bring_checkout() {
    rm -rf "$WORK/control"
    copy_sources "$WORK/control"
    cp -R "$WORK/wheelhouse" "$CONTROL/deploy/wheelhouse"
}

# let_in NAME: SSH, as on machines that Ansible is used with.
let_in() {
    inside "$1" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes \
        --no-install-recommends openssh-server > "$WORK/ssh.log" 2>&1
    # Ansible makes .ansible, also in check mode.
    install -d -m 700 "$WORK/$1/root/.ssh" "$WORK/$1/root/.ansible"
    install -m 600 "$WORK/key.pub" "$WORK/$1/root/.ssh/authorized_keys"
}

# inventory: print it; WRONG is a variable of storage-1 that its script refuses.
inventory() {
    local name
    cat <<END
all:
  vars:
    ansible_user: root
    ansible_ssh_private_key_file: $WORK/key
    ansible_ssh_common_args: >-
      -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
    ansible_python_interpreter: /usr/bin/python3
    manila_lite_conf:
      DATABASE: $DATABASE
      AUTH: $AUTH
      BACKENDS: disk
      SHARE_TYPE_SPECS: driver_handles_share_servers=False snapshot_support=True
  hosts:
END
    for name in "${NODES[@]}"; do
        echo "    $name: {manila_lite_ip: ${IPS[$name]}, ansible_host: ${IPS[$name]}}"
    done
    cat <<END
manila_lite_controllers:
  hosts: {controller: , controller-2: }
manila_lite_shares:
  hosts:
    storage-1: {manila_lite_node_conf: {${WRONG:-}}}
    storage-2:
manila_lite_data:
  hosts: {storage-1: }
END
}

# play ARGUMENT...: run the playbook; what it prints is in $WORK/play.log.
play() {
    local code=0
    inventory > "$WORK/inventory.yml"
    env ANSIBLE_FORCE_COLOR=0 ANSIBLE_PIPELINING=1 LC_ALL=C.UTF-8 \
        build/ansible/bin/ansible-playbook -v -i "$WORK/inventory.yml" \
        "$CONTROL/deploy/ansible/site.yml" "$@" < /dev/null \
        | tee -a "$WORK/plays.log" > "$WORK/play.log" || code=$?
    grep -E '^[a-z0-9-]+ +: ok=' "$WORK/play.log"
    return "$code"
}

# all_changed NUMBER: whether the last run says that of each node.
all_changed() {
    [[ $(grep -cE "^[a-z0-9-]+ +: ok=.* changed=$1 .* failed=0 " "$WORK/play.log") \
        == "${#NODES[@]}" ]]
}

# look FILE: note what is on all nodes, and since when services run.
look() {
    local name
    for name in "${NODES[@]}"; do
        inside "$name" find /etc /opt /root /srv /usr /var -xdev \
            \( -path /root/.ansible -o -path /var/log -o -path /var/tmp \
            -o -path '/var/lib/systemd' -o -path '/var/lib/mysql/*' \
            -o -path '/var/lib/postgresql/*' -o -path '/var/lib/redis/*' \
            -o -path '/var/lib/rabbitmq/*' -o -path '/var/lib/manila/*' \
            -o -path '/srv/shares/*' \) -prune -o ! -name __pycache__ \
            -printf "$name %p %y %m %u:%g %s %C@\n"
        inside "$name" systemctl show --property Id,ExecMainStartTimestampMonotonic \
            'manila-lite*' haproxy mariadb postgresql rabbitmq-server redis-server
    done > "$1"
}

# touches_nothing: play --check, and compare.
touches_nothing() {
    look "$WORK/before"
    play --check
    look "$WORK/after"
    diff "$WORK/before" "$WORK/after"
}

# started NAME UNIT: print when, of the clock that all nodes have.
started() {
    inside "$1" systemctl show --property ExecMainStartTimestampMonotonic --value \
        "$2"
}

tools/install-ansible
rm -f "$WORK"/{key,key.pub,plays.log}
ssh-keygen -q -t ed25519 -N '' -f "$WORK/key"
ip address add 198.18.200.254/24 dev "$BRIDGE"
bring_checkout
for name in "${NODES[@]}"; do
    let_in "$name"
done
say 'new nodes: --check touches nothing'
touches_nothing
grep -c 'set up the role' "$WORK/play.log"
say 'installation'
play
say 'again: nothing changes, with --check and without'
play
all_changed 0
touches_nothing
all_changed 0
words_of_secrets > "$WORK/words"
say 'a share through the proxy'
create_share
say 'a new release: --check says what would change, and touches nothing'
before=$(inside storage-2 readlink /opt/manila_lite)
build_wheels '# the next release'
bring_checkout
echo '# the next release' >> "$CONTROL/manila_lite/__init__.py"
touches_nothing
grep -oE '(installed|switched to|restarted) [^"]*manila[^"]*' "$WORK/play.log" \
    | sort | uniq -c
say 'it fails on storage-1: the nodes that come later keep what they run'
if WRONG='BACKUPS_KEPT: none' play; then
    exit 1
fi
grep -o 'BACKUPS_KEPT is a number of backups, not none' "$WORK/play.log" | head -n 1
[[ $(inside storage-2 readlink /opt/manila_lite) == "$before" ]]
[[ $(inside controller readlink /opt/manila_lite) != "$before" ]]
say 'one node after another: the first controller, share nodes, the other controllers'
play
for pair in controller:manila-lite-controller storage-1:manila-lite-share \
        storage-1:manila-lite-data storage-2:manila-lite-share \
        controller-2:manila-lite-controller; do
    started "${pair%:*}" "${pair#*:}"
done | tee "$WORK/started"
sort -n "$WORK/started" | diff "$WORK/started" -
[[ $(inside storage-2 readlink /opt/manila_lite) != "$before" ]]
share_is_there
play
all_changed 0
say 'a node goes back by itself, and forward again by Ansible'
inside storage-2 env LOCAL_CONF=/etc/manila_lite/local.conf \
    /opt/manila_lite-sources/deploy/rollback
[[ $(inside storage-2 readlink /opt/manila_lite) == "$before" ]]
play --limit storage-2
[[ $(inside storage-2 readlink /opt/manila_lite) != "$before" ]]
say 'no secret in what Ansible prints, nor left in a temporary directory'
if grep -qF -f "$WORK/words" "$WORK/plays.log"; then
    exit 1
fi
for name in "${NODES[@]}"; do
    inside "$name" find /var/tmp /tmp -name 'manila-lite.*'
done | tee "$WORK/left"
[[ ! -s $WORK/left ]]
rm "$WORK/words"
say 'All of it works.'
