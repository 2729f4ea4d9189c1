# The program: each version in a directory of its own, and a link to the one
# that services are started from. They import modules when they first need
# them, so nothing is changed below a running one.
# shellcheck shell=bash disable=SC2153

SOURCES=(manila_lite etc setup.cfg pyproject.toml requirements.txt README.md
    LICENSE)
MYSQLCLIENT_BUILD=(gcc python3-dev pkg-config libmariadb-dev)
UNIT_FILES=etc/manila_lite/systemd
# What deploy/wheels makes: the wheels, which of them a node installs with their
# hashes, and what they were built from.
WHEELHOUSE=$DEPLOY/wheelhouse
WANTED_WHEELS=$WHEELHOUSE/requirements.txt
BUILT_FROM=$WHEELHOUSE/built-from

# build_wheelhouse: fetch what constraints.txt names, and build manila_lite.
build_wheelhouse() (
    umask 022
    work=$(mktemp -d "$DEPLOY/.wheelhouse.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cd "$DEPLOY/.." || exit
    mkdir "$work/source" "$work/wheels"
    cp -R "${SOURCES[@]}" "$work/source"
    # What has to be built is built by the version named there, too.
    awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' constraints.txt \
        > "$work/setuptools.txt"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --require-hashes --no-deps \
        --requirement "$work/setuptools.txt"
    "$work/venv/bin/pip" wheel --quiet --require-hashes --no-deps \
        --no-build-isolation --wheel-dir "$work/wheels" \
        --requirement constraints.txt
    "$work/venv/bin/pip" wheel --quiet --no-deps --no-build-isolation \
        --wheel-dir "$work/wheels" "$work/source"
    cd "$work/wheels" || exit
    for wheel in *.whl; do
        IFS=- read -r name version _ <<< "$wheel"
        hash=$(sha256sum "$wheel")
        echo "$name==$version --hash=sha256:${hash%% *}"
    done > requirements.txt
    wheel_sources > built-from
    rm -rf "$WHEELHOUSE"
    mv "$work/wheels" "$WHEELHOUSE"
)

# wheel_sources: what has to be the same where wheels are built and installed.
wheel_sources() {
    uname -m
    python3 --version
    source_digest ''
}

# source_digest EXTRAS: a number that changes with what would be installed.
source_digest() {
    (
        cd "$DEPLOY/.." || exit
        printf '%s\n' "$1" "$(python3 --version)"
        find "${SOURCES[@]}" -type f -not -name '*.pyc' \
            -not -name '*.sample' -print0 \
            | LC_ALL=C sort -z | xargs -0 sha256sum
    ) | sha256sum
}

# use_program EXTRAS: set the directory of the version beside deploy.
use_program() {
    local version digest
    version=$(sed -n 's/^version *= *//p' "$DEPLOY/../setup.cfg")
    digest=$(source_digest "$1")
    PROGRAM=$RELEASES/$version-${digest:0:12}
}

# install_program: a virtual environment, from the sources beside deploy. No
# service is started from it before switch_program.
install_program() {
    install_packages python3 python3-venv logrotate curl
    local extras=redis compiler=()
    case $DATABASE_URL in
        mysql://* | mysql+mysqldb://*)
            # A driver in C, which is compiled; PyMySQL is for eventlet.
            compiler=("${MYSQLCLIENT_BUILD[@]}")
            extras+=,mysql,mysqlclient
            ;;
        mysql*) extras+=,mysql ;;
        postgresql*) extras+=,postgresql ;;
    esac
    if uses_keystone; then
        extras+=,memcached
    fi
    if [[ -e $WHEELHOUSE ]]; then
        cmp --silent "$BUILT_FROM" <(wheel_sources) \
            || die "$WHEELHOUSE is of other sources, or for another Python or" \
                'processor: run deploy/wheels again, or remove it'
        if ((${#compiler[@]})); then
            install_packages libmariadb3
        fi
        # All of them: the program is the same on each node.
        extras=$(sha256sum < "$WANTED_WHEELS")
    else
        install_packages "${compiler[@]}"
    fi
    use_program "$extras"
    act keep_unit_files
    if [[ ! -e $PROGRAM/.complete ]]; then
        local install=(install_sources "$extras")
        if [[ -e $WHEELHOUSE ]]; then
            install=(install_wheels)
        fi
        change "installed manila_lite into $PROGRAM" \
            make_program "${install[@]}"
    fi
}

# make_program COMMAND...: fill the directory of the version by a command.
make_program() (
    umask 022
    mkdir -p "$RELEASES"
    # It may be there in part.
    rm -rf "$PROGRAM"
    python3 -m venv "$PROGRAM"
    "$@"
    cp -R "$DEPLOY/../$UNIT_FILES" "$PROGRAM/units"
    touch "$PROGRAM/.complete"
)

# install_wheels: those of the wheelhouse, unless one has been changed.
install_wheels() {
    "$PROGRAM/bin/pip" install --quiet --no-index --no-deps --require-hashes \
        --find-links "$WHEELHOUSE" --requirement "$WANTED_WHEELS"
}

# install_sources EXTRAS: with the newest versions that are allowed.
install_sources() (
    # The build writes beside the sources, so it gets a copy of them.
    source=$(mktemp -d)
    trap 'rm -rf "$source"' EXIT
    cd "$DEPLOY/.." || exit
    cp -R "${SOURCES[@]}" "$source"
    "$PROGRAM/bin/pip" install --quiet "${source}[$1]"
)

# keep_unit_files: those of a version that earlier scripts have installed
# without them, in the place of the link.
keep_unit_files() {
    if [[ -L $VENV || ! -d $VENV || -e $VENV/units ]]; then
        return
    fi
    mkdir -m 755 "$VENV/units"
    find "$UNITS" -maxdepth 1 -name 'manila-lite*.service' \
        -exec cp -t "$VENV/units" {} +
}

# switch_program: let services be started from PROGRAM from now on, and note
# the version before it.
switch_program() {
    local before=
    if [[ -L $VENV ]]; then
        before=$(readlink "$VENV")
        [[ $before != "$PROGRAM" ]] || return 0
    elif [[ -d $VENV ]]; then
        before=$RELEASES/earlier
    fi
    change "switched to $PROGRAM" replace_link "$before"
}

# replace_link BEFORE: that of the program, which is at BEFORE until now.
replace_link() {
    if [[ -n $1 ]]; then
        put_link "$1" "$RELEASES/previous"
    fi
    if [[ -d $VENV && ! -L $VENV ]]; then
        mv -T "$VENV" "$1"
    fi
    put_link "$PROGRAM" "$VENV"
}

# put_link TARGET PATH: make or replace a link in one step.
put_link() {
    ln -sfT "$1" "$2.new"
    mv -fT "$2.new" "$2"
}

# remove_old_programs: all but the one in use, the one before it, and those
# that a service of this machine has not been restarted from yet.
remove_old_programs() {
    local path previous
    previous=$(readlink "$RELEASES/previous" || true)
    if checks && [[ $(readlink "$VENV") != "$PROGRAM" ]]; then
        # What the link will be.
        previous=$(readlink "$VENV")
    fi
    for path in "$RELEASES"/*; do
        if [[ -L $path || $path == "$PROGRAM" || $path == "$previous" ]] \
                || grep -qsxF -e "$path" "$STARTED"/*; then
            continue
        fi
        delete_file "$path"
    done
}

# program: print the directory of the version whose commands are run here.
program() {
    if [[ -n $PROGRAM && ($CHECK == no || -e $PROGRAM) ]]; then
        echo "$PROGRAM"
    else
        echo "$VENV"
    fi
}

# program_units: print the directory of the unit files of PROGRAM.
program_units() {
    if [[ $CHECK == no || -e $PROGRAM ]]; then
        echo "$PROGRAM/units"
    else
        echo "$DEPLOY/../$UNIT_FILES"
    fi
}

# manage ARGUMENT...: run manila-lite-manage as the user of the service.
manage() {
    if [[ -e $MANAGE_CONF ]]; then
        manage_with "$MANAGE_CONF" "$@"
    else
        # An older release has set up this node.
        manage_with /dev/null "$@"
    fi
}

# manage_with FILE ARGUMENT...: that user cannot read the file, but a copy that no
# other process can open.
manage_with() {
    local copy descriptor code=0
    copy=$(mktemp)
    cat "$1" > "$copy"
    # Not before: the kernel refuses others' files in /tmp to root, too.
    chown manila: "$copy"
    exec {descriptor}< "$copy"
    rm "$copy"
    runuser -u manila -- "$(program)/bin/manila-lite-manage" "${@:2}" \
        --config-file "$CONF" --config-file "/dev/fd/$descriptor" || code=$?
    exec {descriptor}<&-
    return "$code"
}
