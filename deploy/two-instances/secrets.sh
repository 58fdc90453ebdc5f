#!/usr/bin/env bash
# Makes the passwords for Redis, once.
# usage: secrets.sh [FOLDER]      default: secrets/ beside this script
set -euo pipefail
folder=${1:-"$(dirname "$0")/secrets"}
umask 077
mkdir -p "$folder"
cd "$folder"
if [ -e redis-password ]; then
    echo "secrets.sh: $PWD/redis-password is there already; nothing changed" >&2
    exit
fi

random() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
random > redis-admin-password
random > redis-password
# Exactly what the store sends: claim, prove the memory, take back. A database other than 0 needs +select as well, a
# Cluster +cluster|slots and +asking.
cat > redis-users.conf <<END
requirepass $(cat redis-admin-password)
user portcullis on #$(sha256sum < redis-password | cut -d ' ' -f 1) ~portcullis:* +set +get +del +eval +time +info +client|setname
END
# Containers read them under user ids of their own; on this machine the folder keeps others out.
chmod 444 redis-password redis-users.conf
