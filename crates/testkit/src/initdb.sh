#!/bin/sh
# Takes the place of initdb in tests. The first call with some options runs initdb and keeps a copy of its result; later
# calls copy that and give the copy a system identifier of its own, in a tenth of the CPU time. A copy has the password
# of its template. Whatever does not work is left to initdb.
real='REAL'
templates='TEMPLATES'

data='' password='' options='' name=''
for argument; do
    case $name in
        -D) data=$argument ;;
        --pwfile) password=$argument ;;
        *) case $argument in -D | --pwfile) ;; *) options="$options $argument" ;; esac ;;
    esac
    case $name in -D | --pwfile) name='' ;; *) name=$argument ;; esac
done
template=$templates/$(printf %s "$options" | tr -c '[:alnum:]=' _)

# Number of bytes before the checksum in a pg_control: CRC-32C of these bytes, its 4 bytes follow.
length() {
    crc=4294967295 word=0 n=0
    for byte in $(od -An -v -tu1 -N512 "$1"); do
        word=$((word >> 8 | byte << 24)) n=$((n + 1))
        [ $((n % 4)) != 0 ] || [ $n -le 8 ] || [ "$word" != "$before" ] || { echo $((n - 4)); return; }
        add "$byte"
        [ $((n % 4)) != 0 ] || before=$((crc ^ 4294967295))
    done
    return 1
}

add() {
    crc=$((crc ^ $1))
    for bit in 1 2 3 4 5 6 7 8; do
        crc=$((crc >> 1 ^ (crc & 1) * 2197175160))
    done
}

# Four bytes, the lowest first, at a place of a file.
put() {
    printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24)))" |
        dd of="$2" bs=1 seek="$3" conv=notrunc status=none
}

# The lower half of the system identifier, in pg_control and in the first page of WAL.
identify() {
    control=$data/global/pg_control
    put "$(od -An -tu4 -N4 /dev/urandom | tr -d ' ')" "$control" 0 || return
    crc=4294967295
    for byte in $(od -An -v -tu1 -N"$(cat "$template/length")" "$control"); do
        crc=$((crc ^ byte))
        crc=$((crc >> 1 ^ (crc & 1) * 2197175160)) crc=$((crc >> 1 ^ (crc & 1) * 2197175160))
        crc=$((crc >> 1 ^ (crc & 1) * 2197175160)) crc=$((crc >> 1 ^ (crc & 1) * 2197175160))
        crc=$((crc >> 1 ^ (crc & 1) * 2197175160)) crc=$((crc >> 1 ^ (crc & 1) * 2197175160))
        crc=$((crc >> 1 ^ (crc & 1) * 2197175160)) crc=$((crc >> 1 ^ (crc & 1) * 2197175160))
    done
    put $((crc ^ 4294967295)) "$control" "$(cat "$template/length")" &&
        dd if="$control" of="$data/pg_wal/000000010000000000000001" bs=8 count=1 seek=3 conv=notrunc status=none
}

if [ -z "$data" ] || [ -z "$password" ]; then
    exec "$real" "$@"
fi
if [ -d "$template" ]; then
    if cp -a "$template/data" "$data" 2>/dev/null && identify && cat "$template/password" >"$password"; then
        exit
    fi
    rm -rf "$data"
    exec "$real" "$@"
fi
"$real" "$@" || exit
new=$(mktemp -d "$templates/.new-XXXXXX") || exit 0
# Another process may be the first to put it there.
cp -a "$data" "$new/data" && cp "$password" "$new/password" && length "$data/global/pg_control" >"$new/length" &&
    mv -T "$new" "$template" 2>/dev/null || rm -rf "$new"
