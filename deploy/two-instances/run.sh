#!/usr/bin/env bash
# Two instances, their Redis, a backend and an issuer of tokens on loopback, until Ctrl-C. Leaves nothing behind.
# Ports: A_PORT, B_PORT, A_ADMIN_PORT, B_ADMIN_PORT, REDIS_PORT, FRONT_PORT. The binary: PORTCULLIS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
A_PORT=${A_PORT:-8081} A_ADMIN_PORT=${A_ADMIN_PORT:-9091}
B_PORT=${B_PORT:-8082} B_ADMIN_PORT=${B_ADMIN_PORT:-9092}
REDIS_PORT=${REDIS_PORT:-6390} FRONT_PORT=${FRONT_PORT:-8079}

fail() {
    echo "run.sh: $*" >&2
    exit 1
}

program() { command -v "$1" || command -v "$2" || fail "$1 is not installed"; }

find_portcullis() {
    local candidate
    for candidate in "$here"/../../.build/{release,debug}/portcullis; do
        if [ -x "$candidate" ]; then echo "$candidate" && return; fi
    done
    command -v portcullis || fail "build portcullis first (make build), or set PORTCULLIS"
}

portcullis=${PORTCULLIS:-$(find_portcullis)}
redis_server=$(program redis-server valkey-server)
folder=$(mktemp -d)
children=()

stop() {
    trap '' INT TERM
    trap - EXIT
    # Redis may have been started again by hand, so its own file says who it is.
    local redis=
    if [ -s "$folder/redis.pid" ]; then redis=$(cat "$folder/redis.pid"); fi
    kill "${children[@]}" $redis 2> "$folder/kill.log" || true
    wait
    # Redis removes the file when it ends; it is nobody's child here.
    for ((tries = 0; tries < 50; tries++)); do [ -e "$folder/redis.pid" ] && sleep 0.1 || break; done
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 0' INT TERM

start() {
    local name=$1
    shift
    "$@" > "$folder/$name.log" 2>&1 &
    children+=($!)
}

# wait_for NAME COMMAND…: until it succeeds, while the child that was started last lives.
wait_for() {
    local name=$1
    shift
    until "$@" > "$folder/wait.log" 2>&1; do
        if ! kill -0 "${children[-1]}" 2> "$folder/kill.log"; then
            tail -n 5 "$folder/$name.log" >&2
            fail "$name did not start"
        fi
        sleep 0.1
    done
}

"$here/secrets.sh" "$folder/secrets"

# redis.conf as it is; only places differ, and what follows an include overrides it.
cat > "$folder/redis.conf" << END
include $here/redis.conf
port $REDIS_PORT
dir $folder
daemonize yes
pidfile $folder/redis.pid
logfile $folder/redis.log
END
(cd "$folder" && "$redis_server" redis.conf)
# It is in the background before it knows whether its port is free.
for ((tries = 0; tries < 100; tries++)); do [ -s "$folder/redis.pid" ] && break || sleep 0.1; done
[ -s "$folder/redis.pid" ] || fail "Redis did not start: $(tail -n 3 "$folder/redis.log")"

# The demo has a backend and an issuer; its own proxy is not needed here.
start demo "$portcullis" demo
wait_for demo grep -q msg=serving "$folder/demo.log"
place() { sed -n "s|^ *$1 *http://\([0-9.:]*\) .*|\1|p" "$folder/demo.log"; }
backend=$(place backend) issuer=$(place issuer)

# proxy.conf as it is; only places differ, and tokens are the demo's.
configure() {
    sed -e "s|0\.0\.0\.0:8080|127.0.0.1:$2|" -e "s|0\.0\.0\.0:9090|127.0.0.1:$3|" \
        -e "s|/var/lib/portcullis|$folder/state-$1|" -e "s|172\.30\.80\.0/24|127.0.0.1|" \
        -e "s|backend:9000|$backend|" -e "s|redis:6379|127.0.0.1:$REDIS_PORT|" \
        -e "s|^timeout = .*|timeout = \"2s\"     # a machine that is busy with something else|" \
        -e "/^number =/a issuer = \"http://$issuer/123456789012\"\njwks = \"http://$issuer/jwks\"" \
        "$here/proxy.conf" > "$folder/$1.conf"
    mkdir "$folder/state-$1"
    "$portcullis" check -c "$folder/$1.conf" > "$folder/check.log" || fail "proxy.conf is wrong"
}

for name in a b; do
    if [ $name = a ]; then port=$A_PORT admin=$A_ADMIN_PORT; else port=$B_PORT admin=$B_ADMIN_PORT; fi
    configure $name "$port" "$admin"
    start "$name" "$portcullis" run -c "$folder/$name.conf"
    wait_for "$name" curl -fs "http://127.0.0.1:$admin/readyz"
done

front=
if command -v haproxy > "$folder/wait.log"; then
    export FRONT=127.0.0.1:$FRONT_PORT A=127.0.0.1:$A_PORT B=127.0.0.1:$B_PORT A_ADMIN_PORT B_ADMIN_PORT
    start haproxy haproxy -db -f "$here/haproxy.cfg"
    wait_for haproxy curl -fs "http://$FRONT/"
    front="  both, by turns   http://$FRONT"
fi

cat << END

Two instances of Portcullis share the claims in one Redis.

  instance a       http://127.0.0.1:$A_PORT    metrics http://127.0.0.1:$A_ADMIN_PORT/metrics
  instance b       http://127.0.0.1:$B_PORT    metrics http://127.0.0.1:$B_ADMIN_PORT/metrics
${front:+$front
}
Paste into another terminal:

  # 1. A token that instance a accepted: 200, then 401 token_already_used from instance b.
  ONCE=\$(curl -s http://$issuer/limited-use-token)
  curl -i -H "X-Firebase-AppCheck: \$ONCE" http://127.0.0.1:$A_PORT/transfers/1
  curl -i -H "X-Firebase-AppCheck: \$ONCE" http://127.0.0.1:$B_PORT/transfers/1

  # 2. Without Redis: 503 verification_unavailable where a token is good once, 200 elsewhere.
  kill \$(cat $folder/redis.pid)
  curl -i -H "X-Firebase-AppCheck: \$(curl -s http://$issuer/limited-use-token)" http://127.0.0.1:$A_PORT/transfers/2
  curl -i http://127.0.0.1:$A_PORT/elsewhere

  # 3. Redis again, with an empty memory: what was used before is still refused, new tokens pass within seconds.
  (cd $folder && $redis_server redis.conf)
  curl -i -H "X-Firebase-AppCheck: \$ONCE" http://127.0.0.1:$B_PORT/transfers/3
  curl -i -H "X-Firebase-AppCheck: \$(curl -s http://$issuer/limited-use-token)" http://127.0.0.1:$A_PORT/transfers/3

  # 4. What became of the claims.
  curl -s http://127.0.0.1:$A_ADMIN_PORT/metrics http://127.0.0.1:$B_ADMIN_PORT/metrics | grep '^portcullis_replay_claims_total' | grep -v ' 0\$'

The logs are in $folder until Ctrl-C ends it all.

END

wait -n || true
fail "one of them ended by itself: $(tail -qn 1 "$folder"/{demo,a,b}.log)"
