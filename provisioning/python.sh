# Read by the commands beside it: runs a module of theirs in a Python that
# fits. Debian's own build comes first, for it is optimised and 1.3 times as
# fast as one that was compiled plainly.

# Without caches each process would compile the whole project again, and each
# process of the tests would rewrite all of their assertions.
unset PYTHONDONTWRITEBYTECODE
# Of the files that a command is given; it runs in the folder of the release.
export CALLER_FOLDER="${CALLER_FOLDER-$PWD}"

run_module() {
    module=$1
    shift
    for candidate in /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            cd -- "$root" && exec "$candidate" -m provisioning "$module" "${path#"$root"/}" "$@"
        fi
    done
    echo "$(basename -- "$0"): needs Python 3.11 or newer (apt-get install python3)." >&2
    exit 1
}

path=$(readlink -f -- "$0")
root=$(dirname -- "$(dirname -- "$path")")
