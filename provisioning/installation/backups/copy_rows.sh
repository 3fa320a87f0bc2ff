#!/bin/sh
# copy_rows.sh FROM TO TABLE [WHERE]
# Copies rows of a table between two databases, of which FROM and TO are the folders
# of the sockets: all rows or none, while both are in use.
set -eu
from=$1 to=$2 table=$3 where=${4:-true}
psql="psql --no-psqlrc --quiet --username=postgres --dbname=groundswell --port=5432"
{
    echo "BEGIN; SET LOCAL lock_timeout = '10s'; COPY $table FROM STDIN;"
    # Without the COMMIT, where this fails half way, nothing is kept.
    $psql --host="$from" -c "COPY (SELECT * FROM $table WHERE $where) TO STDOUT" &&
        printf '\\.\nCOMMIT;\n'
} | $psql --host="$to" -v ON_ERROR_STOP=1
