#!/bin/sh
# make_certificates.sh FOLDER NAME HOST...
# Makes FOLDER/HOST.pem and HOST.key for each host, by an authority that it makes as
# well (ca.pem, ca.key), and prints the hosts. A certificate that lasts for another half
# a year stays. NAME is that of all of them as clients.
set -eu
umask 077
folder=$1 name=$2
shift 2
mkdir -p "$folder"
cd "$folder"
sign="openssl req -config /dev/null -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
if [ ! -e ca.pem ]; then
    $sign -days 7300 -subj "/CN=Groundswell backups" -keyout ca.key -out ca.pem.new \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
    mv ca.pem.new ca.pem
fi
for host in "$@"; do
    ! openssl x509 -checkend $((180 * 86400)) -noout -in "$host.pem" >/dev/null 2>&1 || continue
    # pgBackRest looks for the host it calls among the names, even where it is a number.
    $sign -CA ca.pem -CAkey ca.key -days 730 -subj "/CN=$name" \
        -keyout "$host.key.new" -out "$host.pem.new" \
        -addext "subjectAltName=DNS:$host" -addext basicConstraints=critical,CA:FALSE
    mv "$host.key.new" "$host.key"
    mv "$host.pem.new" "$host.pem"
    echo "$host"
done
