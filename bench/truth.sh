#!/usr/bin/env bash
# One round of the truth test: the reference client and Loadstone, one after the other, against a
# server that answers 10 ms after it read a request and freezes for 500 ms every 2 s. What each said,
# and how late the server itself was meanwhile, is left in FOLDER; `cargo xtask truth` starts this and
# compares. Loopback only.
#
#   ./truth.sh FOLDER
#
# LOADSTONE_BIN=target/dist/loadstone  RATE=2000 SECS=5 SRV_CORE=0 CLI_CORE=1
#
#   reference      2,000 connections open beforehand          -> truth of the open load
#   ours           pool free to grow                          must agree with it
#   reference-64   64 connections, the rest waits its turn    -> truth of that other system
#   ours-64        --connections-max 64                       must agree with it
#   ours-closed    20 users: what hides the freeze; shown only
export LOADSTONE_STORE=none
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[ $# = 1 ] || { sed -n '2,9p' "$0" >&2; exit 2; }
mkdir -p "$1"; OUT=$(readlink -f "$1")
WORK=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/loadstone-peers}
RATE=${RATE:-2000} SECS=${SECS:-5} SRV_CORE=${SRV_CORE:-0} CLI_CORE=${CLI_CORE:-1} PORT=${PORT:-18280}
LOADSTONE_BIN=$(readlink -f "${LOADSTONE_BIN:-../target/dist/loadstone}")
[ -x "$LOADSTONE_BIN" ] || { echo "no $LOADSTONE_BIN: cargo build --profile dist -p loadstone" >&2; exit 2; }
CARGO_TARGET_DIR=$WORK/target cargo build --quiet --release --manifest-path limit/Cargo.toml
B=$WORK/target/release

rm -f "$OUT"/*.txt "$OUT"/*.json "$OUT"/*.server "$OUT"/*.log
while (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null; do PORT=$((PORT + 1)); done
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
taskset -c "$SRV_CORE" "$B/nullserver" "127.0.0.1:$PORT" --delay-us 10000 --stall-ms 500 --period-ms 2000 --spin >"$OUT/nullserver.log" 2>&1 &
SERVER=$!
trap 'kill $SERVER 2>/dev/null' EXIT
until grep -q listening "$OUT/nullserver.log"; do kill -0 $SERVER || { cat "$OUT/nullserver.log" >&2; exit 1; }; sleep 0.05; done
URL=http://127.0.0.1:$PORT/hw
# ahead of other work where we may; server and every client alike
AHEAD=; nice -n -20 true 2>/dev/null && { AHEAD="nice -n -20"; renice -n -20 -p $SERVER >/dev/null; }

ours() { # name options...: INVALID (4) is a fair answer here, anything else but 0 is not
  local name=$1 code=0; shift
  $AHEAD taskset -c "$CLI_CORE" "$LOADSTONE_BIN" run "$@" -d "${SECS}s" --threads 1 --cpus "$CLI_CORE" --json - "$URL" \
    >"$OUT/$name.json" 2>"$OUT/$name.log" </dev/null || code=$?
  [ $code = 0 ] || [ $code = 4 ] || { echo "loadstone ($name) ended with $code:" >&2; cat "$OUT/$name.log" >&2; exit 1; }
}
reference() { # name connections
  $AHEAD taskset -c "$CLI_CORE" "$B/openref" "127.0.0.1:$PORT" /hw "$RATE" "$SECS" --conns "$2" >"$OUT/$1.txt" 2>"$OUT/$1.log" </dev/null
}
done_with() { # name: keep what the server says of itself; it starts anew after a second of silence
  curl -s "http://127.0.0.1:$PORT/__late" >"$OUT/$1.server"
  sleep 1.3
}

reference reference 2000; done_with reference
ours ours --rate "$RATE/s"; done_with ours
reference reference-64 64; done_with reference-64
ours ours-64 --rate "$RATE/s" --connections-max 64; done_with ours-64
ours ours-closed -c 20; done_with ours-closed
