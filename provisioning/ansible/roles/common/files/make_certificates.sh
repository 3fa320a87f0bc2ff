#!/bin/sh
# make_certificates.sh AUTHORITY FOLDER NAME DAYS HOST[,ADDRESS...]...
# Makes FOLDER/HOST.pem and HOST.key for each host, by the authority in the folder
# AUTHORITY, which it makes as well (ca.pem, ca.key), and prints the hosts. A
# certificate that lasts for another half a year stays. NAME is that of all of them as
# clients; as servers they have their host's address, and those behind it.
set -eu
umask 077
authority=$1 folder=$2 name=$3 days=$4
shift 4
mkdir -p "$authority" "$folder"
sign="openssl req -config /dev/null -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
if [ ! -e "$authority/ca.pem" ]; then
    $sign -days 7300 -subj "/CN=Groundswell" -keyout "$authority/ca.key" \
        -out "$authority/ca.pem.new" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
    mv "$authority/ca.pem.new" "$authority/ca.pem"
fi
cd "$folder"
for addresses in "$@"; do
    host=${addresses%%,*}
    ! openssl x509 -checkend $((180 * 86400)) -noout -in "$host.pem" >/dev/null 2>&1 || continue
    names=
    for address in $(echo "$addresses" | tr , ' '); do
        # pgBackRest looks for the host it calls among the names, even where it is a
        # number; everything else among the numbers.
        names="$names,DNS:$address"
        case $address in *[!0-9.:]*) ;; *) names="$names,IP:$address" ;; esac
    done
    $sign -CA "$authority/ca.pem" -CAkey "$authority/ca.key" -days "$days" -subj "/CN=$name" \
        -keyout "$host.key.new" -out "$host.pem.new" \
        -addext "subjectAltName=${names#,}" -addext basicConstraints=critical,CA:FALSE
    mv "$host.key.new" "$host.key"
    mv "$host.pem.new" "$host.pem"
    echo "$host"
done
