# Words such as passwords, which may have any character but a newline, as the
# formats of files want them. Functions print.
# shellcheck shell=bash

# quote_url TEXT: for a part of a URL.
quote_url() {
    local LC_ALL=C at char
    for ((at = 0; at < ${#1}; at++)); do
        char=${1:at:1}
        if [[ $char == [a-zA-Z0-9._~-] ]]; then
            printf %s "$char"
        else
            # A byte above 127 may be a negative number.
            printf '%%%02X' "$(($(printf %d "'$char") & 255))"
        fi
    done
}

# quote_option TEXT: for an option of oslo.config, which replaces $name by
# other options, and removes spaces and quotation marks at the ends.
quote_option() {
    local text=${1//\$/\\\$}
    if [[ $text == [[:space:]\"\']* || $text == *[[:space:]\"\'] ]]; then
        text="\"$text\""
    fi
    printf %s "$text"
}

# quote_word TEXT: with quotation marks, if it has characters that need them,
# for curl, Redis and the option files of MariaDB.
quote_word() {
    if [[ $1 =~ ^[a-zA-Z0-9._-]+$ ]]; then
        printf %s "$1"
        return
    fi
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

# quote_sql TEXT: for a statement in PostgreSQL.
quote_sql() {
    printf "'%s'" "${1//\'/\'\'}"
}

# quote_mysql TEXT: for a statement in MariaDB, where a backslash escapes.
quote_mysql() {
    quote_sql "${1//\\/\\\\}"
}

# quote_pgpass TEXT: for a field of a password file of PostgreSQL.
quote_pgpass() {
    local text=${1//\\/\\\\}
    printf %s "${text//:/\\:}"
}
