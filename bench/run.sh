#!/usr/bin/env bash
# The budget rows of docs/design.md section 7: every tool once a round, each round starting at another
# tool, so that a slow minute of the machine is slow for everybody. Loopback only. Writes one figure a
# line to $RAW (table, round, tool, metric, value); `cargo xtask bench` starts it and renders
# RESULTS.md from that.
#
#   ./run.sh [TABLE...]     keepalive many one nginx close bulk tls depth16 syscalls memory pace site
#                           http2 http2-tls http2-memory http3 reno; all when none
#
# The table reno is keepalive, many, one, nginx, close and bulk once more, as keepalive-reno and so on, with the bare loop,
# wrk, loadstone and own: in a network namespace of its own where TCP's congestion control is Reno. What the host has is a fact of the raw file.
#
# H2LOAD3=h2load: an h2load that speaks HTTP/3, where there is one (README.md tells how it is built).
# GCANNON=gcannon: a client on io_uring, where there is one.
# LOADSTONE_BIN=target/dist/loadstone  RAW=raw.tsv  ROUNDS=9 SECS=6 CONNS=64 SRV_CORE=0 CLI_CORE=1
# PACE_SECS=5, and the numbers of calls below: the raw file has all of them as facts.
# The peers are those of ./peers.sh install; one that is not installed is left out and said so.
export LOADSTONE_STORE=none
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
. ./peers.sh
ROUNDS=${ROUNDS:-9}
H2LOAD3=${H2LOAD3:-h2load-http3}
GCANNON=${GCANNON:-gcannon}
LOADSTONE_BIN=$(readlink -f "${LOADSTONE_BIN:-../target/dist/loadstone}")
export RAW=${RAW:-$WORK/bench-$(date +%Y%m%d-%H%M%S).tsv}
MEMORY_ROUNDS=3 PACE_SECS=${PACE_SECS:-5}
# Calls of a run of HTTP/2 (1, 10, 100 streams; over TLS) and HTTP/3 (1, 10, 100 streams; a connection each).
N1=${N1:-200000} N10=${N10:-1000000} N100=${N100:-1500000} NTLS=${NTLS:-400000}
N31=${N31:-200000} N310=${N310:-300000} N3100=${N3100:-300000} N3C=${N3C:-6000}
# pace 2,000/s has a budget; the other rates are there to be seen
PACE_RATES="1000 2000 5000 10000 20000 50000" PACE_BUDGET=2000 PACE_ROUNDS=3

# Before the clients whose punctuality is measured, where that is allowed: docs/decisions/0024.
REALTIME=()
chrt -r 1 true 2>/dev/null && REALTIME=(chrt -r 1)

fact() { printf '# %s\t%s\n' "$1" "$2" >>"$RAW"; }
note() { echo "run.sh: $*" >&2; }
# name of a table in the raw file; CONGESTION is set in the namespace of the table reno
table_name() { echo "$1${CONGESTION:+-$CONGESTION}"; }
figure() { printf '%s\t%s\t%s\t%s\t%s\n' "$(table_name "$1")" "${@:2}" >>"$RAW"; } # table round tool metric value

facts() {
  fact date "$(date -u +%Y-%m-%dT%H:%MZ)"
  fact commit "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' with changes')"
  fact machine "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(uname -sr)"
  fact loadstone "$("$LOADSTONE_BIN" --version | head -1)"
  fact nginx "$(nginx -v 2>&1 | sed 's/.*: //')"
  command -v wrk >/dev/null && fact wrk "$(wrk -v 2>&1 | head -1)"
  command -v h2load >/dev/null && fact h2load "$(h2load --version 2>&1 | head -1)"
  command -v ab >/dev/null && fact ab "$(ab -V 2>&1 | head -1)"
  command -v httperf >/dev/null && fact httperf "$(httperf --version 2>&1 | grep -m1 -o 'httperf-[^ ]*')"
  command -v oha >/dev/null && fact oha "$(oha --version 2>&1 | head -1)"
  command -v k6 >/dev/null && fact k6 "$(k6 version 2>&1 | head -1)"
  command -v "$H2LOAD3" >/dev/null && fact h2load-http3 "$("$H2LOAD3" --version 2>&1 | head -1)"
  fact congestion "$(cat /proc/sys/net/ipv4/tcp_congestion_control), but in tables whose name ends with another one"
  fact pace "runs of $PACE_SECS s, clients scheduled by ${REALTIME[*]:-the ordinary policy}"
  fact rounds "$ROUNDS of $SECS s, $CONNS connections; server on core $SRV_CORE, client on core $CLI_CORE or the server's"
  fact calls "http2-1 $N1, http2-10 $N10, http2-100 $N100, http2-tls $NTLS, http3-1 $N31, http3-10 $N310, http3-100 $N3100, http3-connect $N3C"
}

# Of a server that does not count: the client made CALLS calls, and the meter's figures are of all of them.
of_calls() { # calls line
  awk -F'\t' -v OFS='\t' -v n="$1" '{
    $3 = n; $4 = sprintf("%.0f", n / $2); $5 /= n; $6 /= n; $7 /= n; print }' <<<"$2"
}

# Runs CMD under the meter and keeps its figures. Again, twice at most, when other work took more than
# a fifth of a core. A run that failed leaves no figures.
metered() { # table round tool
  local line try metrics
  for try in 1 2 3; do
    [ $try = 1 ] || sleep 1.3 # the null server tells runs apart by a second of silence
    line=$("$MET" --label "$3" --core "$CORE" --limit "$LIMIT" ${CNT:+--count "$CNT"} --srv "$SRV" $AHEAD \
      --log "$WORK/log/$1-$3.out" -- "${CMD[@]}") || { note "$1 $3: the meter failed"; return 1; }
    [ -n "$CNT" ] || line=$(of_calls "$CALLS" "$line")
    awk -F'\t' '{exit !($13 > 0.2)}' <<<"$line" || break
  done
  if [[ " ${ACCEPTED:-0} " != *" $(cut -f15 <<<"$line") "* ]]; then
    note "$1 $3 round $2: exit $(cut -f15 <<<"$line"), not counted: ${CMD[*]}; see $WORK/log/$1-$3.out"
    return 1
  fi
  if [ "$(cut -f3 <<<"$line")" -lt 50 ]; then
    note "$1 $3 round $2: the server counted $(cut -f3 <<<"$line") calls, not counted: ${CMD[*]}"
    return 1
  fi
  awk -F'\t' -v OFS='\t' -v t="$(table_name "$1")" -v r="$2" -v x="$3" '{
    print t, r, x, "cpu_us", $7; print t, r, x, "user_us", $5; print t, r, x, "sys_us", $6
    print t, r, x, "calls_per_s", $4; print t, r, x, "rss_kib", $8; print t, r, x, "client_busy", $11
    print t, r, x, "server_busy", $12; print t, r, x, "foreign", $13 }' <<<"$line" >>"$RAW"
  echo "$1 $2 $line" >&2
}

# CMD of a tool in a table; false where the tool is missing
command_of() { # table tool
  local u=http://$ADDR$REQ hp=${ADDR##*:}; [ "$1" = tls ] && u=$S1$REQ
  local ls=("$LOADSTONE_BIN" run -c "$CONNS" --threads 1 --cpus "$CORE" --quiet)
  case $1/$2 in
  depth16/bare) CMD=("$LOOP" epoll-et "$ADDR" "$REQ" "$SECS" --conns "$CONNS" --depth 16) ;;
  depth16/h2load) CMD=(h2load --h1 -m16 -t1 -c"$CONNS" -D"$SECS" "$u") ;;
  depth16/loadstone) CMD=("${ls[@]}" -d "${SECS}s" --pipeline 16 "$u") ;;
  depth16/loadstone-batches) CMD=("${ls[@]}" -d "${SECS}s" --pipeline 16 --stack kernel:batches "$u") ;;
  depth16/bare-uring) CMD=("$LOOP" uring-m "$ADDR" "$REQ" "$SECS" --conns "$CONNS" --depth 16) ;;
  close/bare) CMD=("$LOOP" close "$ADDR" "$REQ" 2 --conns "$CONNS") ;;
  close/wrk) CMD=(wrk -t1 -c"$CONNS" -d2s -H 'Connection: close' "$u") ;;
  close/ab) CMD=(ab -q -c "$CONNS" -n "$CLOSEN" "$u") ;;
  close/oha) CMD=(oha --no-tui --worker-threads 1 --disable-keepalive -c "$CONNS" -n "$CLOSEN" "$u") ;;
  close/loadstone) CMD=("${ls[@]}" -d 2s --calls 1 "$u") ;;
  close/loadstone-batches) CMD=("${ls[@]}" -d 2s --calls 1 --stack kernel:batches "$u") ;;
  close/own) CMD=("${ls[@]}" -d 2s --calls 1 --stack own "$u") ;;
  close/own-calls) CMD=("${ls[@]}" -d 2s --calls 1 --stack own:calls "$u") ;;
  close/own-batches) CMD=("${ls[@]}" -d 2s --calls 1 --stack own:batches "$u") ;;
  tls/oha) CMD=(oha --no-tui --worker-threads 1 --insecure -c "$CONNS" -z "${SECS}s" "$u") ;;
  tls/loadstone) CMD=("${ls[@]}" -d "${SECS}s" --insecure "$u") ;;
  */bare) CMD=("$LOOP" epoll-et "$ADDR" "$REQ" "$SECS" --conns "$CONNS") ;;
  */bare-uring) CMD=("$LOOP" uring-m "$ADDR" "$REQ" "$SECS" --conns "$CONNS") ;;
  */wrk) CMD=(wrk -t1 -c"$CONNS" -d"${SECS}s" "$u") ;;
  */h2load) CMD=(h2load --h1 -t1 -c"$CONNS" -D"$SECS" "$u") ;;
  */ab) CMD=(ab -q -k -c "$CONNS" -t "$SECS" -n 2000000 "$u") ;;
  */httperf) CMD=(httperf --hog --server 127.0.0.1 --port "$hp" --uri "$REQ" --num-conns "$CONNS" --rate 10000 --num-calls $((SECS * 1600))) ;;
  */oha) CMD=(oha --no-tui --worker-threads 1 -c "$CONNS" -z "${SECS}s" "$u") ;;
  */gcannon) CMD=("$GCANNON" "$u" -c "$CONNS" -t 1 -d "${SECS}s") ;;
  */k6) CMD=(k6 run --quiet --no-summary --vus "$CONNS" --duration "${SECS}s" --env URL="$u" k6.js) ;;
  */loadstone) CMD=("${ls[@]}" -d "${SECS}s" "$u") ;;
  */loadstone-batches) CMD=("${ls[@]}" -d "${SECS}s" --stack kernel:batches "$u") ;;
  */own) CMD=("${ls[@]}" -d "${SECS}s" --stack own "$u") ;;
  */own-calls) CMD=("${ls[@]}" -d "${SECS}s" --stack own:calls "$u") ;;
  */own-batches) CMD=("${ls[@]}" -d "${SECS}s" --stack own:batches "$u") ;;
  *) note "no command for $1 $2"; return 1 ;;
  esac
  command -v "${CMD[0]}" >/dev/null
}

# every tool once a round; the order turns by one each round
rounds() { # table tools...
  local table=$1 round i tool; shift; local tools=("$@")
  LIMIT=$((SECS + 6))
  # the table reno: only the tools that its budgets compare
  [ -z "${CONGESTION:-}" ] || mapfile -t tools < <(printf '%s\n' "$@" | grep -xE 'bare|wrk|loadstone|own')
  for tool in "${tools[@]}"; do command_of "$table" "$tool" || note "$table: $tool is not installed, left out"; done
  for round in $(seq "$ROUNDS"); do
    for ((i = 0; i < ${#tools[@]}; i++)); do
      tool=${tools[(i + round - 1) % ${#tools[@]}]}
      command_of "$table" "$tool" && metered "$table" "$round" "$tool"
    done
  done
}

# HTTP/2 and HTTP/3: H2CONNS connections with so many streams each, and a fixed number of calls, of some
# seconds: a start and a report of ours take some 40 ms, h2load's 3, which are no part of a call. The
# servers are nghttpd on the client's core, nginx and, for HTTP/3, our site (quinn and h3) on the other.
H2CONNS=${H2CONNS:-10}
uncounted() { # table round tool log: calls failed, so that the CPU of the others is not known
  note "$1 $3: calls failed, round $2 is not counted; see $4"
  awk -F'\t' -v t="$1" -v r="$2" -v x="$3" '!($1 == t && $2 == r && $3 == x)' "$RAW" >"$RAW.new" && mv "$RAW.new" "$RAW"
}
multiplexed() { # table url streams calls tools...
  local table=$1 url=$2 streams=$3 round i tool ran; CALLS=$4; shift 4; local tools=("$@") CNT=
  LIMIT=40
  for round in $(seq "$ROUNDS"); do
    for ((i = 0; i < $#; i++)); do
      tool=${tools[(i + round - 1) % $#]}
      case $tool in
      h2load) CMD=(h2load -t1 -c"$H2CONNS" -m"$streams" -n"$CALLS" "$url") ;;
      h2load-http3) CMD=("$H2LOAD3" --alpn-list=h3 -t1 -c"$H2CONNS" -m"$streams" -n"$CALLS" "$url") ;;
      loadstone) CMD=("$LOADSTONE_BIN" run --http 2 --insecure -c "$H2CONNS" --streams "$streams" -n "$CALLS" --threads 1 --cpus "$CORE" --quiet "$url") ;;
      loadstone-http3) CMD=("$LOADSTONE_BIN" run --http 3 --insecure -c "$H2CONNS" --streams "$streams" -n "$CALLS" --threads 1 --cpus "$CORE" --quiet "$url") ;;
      h2load-connect) CMD=("$H2LOAD3" --alpn-list=h3 -t1 -c"$CALLS" -m1 -n"$CALLS" -r12 --rate-period=20ms "$url") ;;
      loadstone-connect) CMD=("$LOADSTONE_BIN" run --http 3 --insecure -c 20 --calls 1 -n "$CALLS" --threads 1 --cpus "$CORE" --quiet "$url") ;;
      esac
      command -v "${CMD[0]}" >/dev/null || { note "$table: $tool is not installed, left out"; continue; }
      # 4: a short run, of which few figures have samples enough
      ACCEPTED="0 4" metered "$table" "$round" "${tool%%-*}" || continue
      ran="$WORK/log/$table-${tool%%-*}.out"
      case $tool in h2load*) grep -q " $CALLS succeeded" "$ran" || uncounted "$table" "$round" h2load "$ran" ;; esac
    done
  done
}

start_nghttpd() { # -> NGHTTPD NGPORT
  [ -e "$WEB/hw" ] || printf 'Hello, world!' >"$WEB/hw"
  NGPORT=$(free_port $((P4 + 40)))
  taskset -c "$SRV_CORE" nghttpd --no-tls -m 1000 -d "$WEB" "$NGPORT" >"$WORK/log/nghttpd.out" 2>&1 &
  NGHTTPD=$!; STARTED+=("$NGHTTPD"); sleep 0.3
}

http2() {
  command -v nghttpd >/dev/null || { note "http2: nghttpd is not installed (nghttp2-server)"; return; }
  start_nghttpd; SRV=$NGHTTPD CORE=$SRV_CORE
  local url=http://127.0.0.1:$NGPORT/hw
  multiplexed http2-1 "$url" 1 "$N1" h2load loadstone
  multiplexed http2-10 "$url" 10 "$N10" h2load loadstone
  multiplexed http2-100 "$url" 100 "$N100" h2load loadstone
}

http2_tls() {
  local url=$S2$REQ streams; SRV=$NGX CORE=$CLI_CORE
  for streams in 1 10 100; do multiplexed "http2-tls-$streams" "$url" "$streams" "$NTLS" h2load loadstone; done
}

# Memory of a connection: peak of many less that of few, each with a call under way.
http2_memory() {
  command -v nghttpd >/dev/null || { note "http2-memory: nghttpd is not installed (nghttp2-server)"; return; }
  local ROUNDS=$MEMORY_ROUNDS tool round conns few many kept=$H2CONNS
  start_nghttpd; SRV=$NGHTTPD CORE=$CLI_CORE
  [ 10200 -le "$(ulimit -n)" ] && many=10000 || many=1000
  for conns in 64 $many; do
    H2CONNS=$conns multiplexed "http2-memory-$conns" "http://127.0.0.1:$NGPORT/hw" 1 $((many * 4)) h2load loadstone
  done
  H2CONNS=$kept
  for round in $(seq "$ROUNDS"); do
    for tool in h2load loadstone; do
      few=$(kept_rss "http2-memory-64" "$round" $tool); many_rss=$(kept_rss "http2-memory-$many" "$round" $tool)
      [ -n "$few" ] && [ -n "$many_rss" ] && figure http2-memory "$round" $tool kib_per_connection \
        "$(awk -v a="$few" -v b="$many_rss" -v n="$many" 'BEGIN {printf "%.3f", (b - a) / (n - 64)}')"
    done
  done
}
kept_rss() { awk -F'\t' -v t="$1" -v r="$2" -v x="$3" '$1 == t && $2 == r && $3 == x && $4 == "rss_kib" {print $5}' "$RAW"; }

http3() {
  local port pid
  port=$(free_port $((P4 + 60)))
  taskset -c "$SRV_CORE" "$LOADSTONE_BIN" site --listen 127.0.0.1:"$port" --http3 "$WORK/cert.pem,$WORK/key.pem" >"$WORK/log/site3.out" 2>&1 &
  pid=$!; STARTED+=("$pid"); sleep 0.5
  SRV=$pid CORE=$CLI_CORE
  local url=https://127.0.0.1:$port/bytes/13
  multiplexed http3-1 "$url" 1 "$N31" h2load-http3 loadstone-http3
  multiplexed http3-10 "$url" 10 "$N310" h2load-http3 loadstone-http3
  multiplexed http3-100 "$url" 100 "$N3100" h2load-http3 loadstone-http3
  # A connection for each call. h2load opens all that it is given, and a thousand handshakes at once overflow the
  # site's socket: what is lost then is sent again after a second, by either program. So it opens 12 each 20 ms, 600 a second.
  multiplexed http3-connect "$url" 1 "$N3C" h2load-connect loadstone-connect
  kill "$pid"
}

# client on the null server's core: no wakeups across cores, the least noise
at_null() { ADDR=127.0.0.1:$NULLPORT CNT=127.0.0.1:$NULLPORT/__count SRV=$NULLPID CORE=$SRV_CORE; }
at_nginx() { ADDR=127.0.0.1:$P1 CNT=127.0.0.1:$P1/stub SRV=$NGX CORE=$CLI_CORE; }
served() { curl -s "http://$CNT" | awk 'NF == 3 && $0 ~ /^[ 0-9]+$/ {print $3}'; } # requests counted so far

# System calls of the whole process over the calls that the server counted.
syscalls() { # table
  local round tool before calls count
  for round in $(seq "$MEMORY_ROUNDS"); do
    for tool in bare wrk h2load httperf loadstone; do
      SECS=2 command_of "$1" "$tool" || continue
      before=$(served)
      if $PERF; then
        timeout 12 taskset -c "$CORE" perf stat -x, -e raw_syscalls:sys_enter -o "$WORK/log/perf.out" -- "${CMD[@]}" >"$WORK/log/$1-$tool.out" 2>&1
        count=$(awk -F, '/sys_enter/ {print $1}' "$WORK/log/perf.out")
      else
        timeout 60 taskset -c "$CORE" strace -f -c -o "$WORK/log/strace.out" "${CMD[@]}" >"$WORK/log/$1-$tool.out" 2>&1
        count=$(awk '$NF == "total" {print ($4 + 0)}' "$WORK/log/strace.out")
      fi
      # the first of the two counter requests is in the second figure
      calls=$(($(served) - before - 1))
      if [ -n "$count" ] && [ "$calls" -gt 1000 ]; then
        figure "$1" "$round" "$tool" per_call "$(awk -v s="$count" -v c="$calls" 'BEGIN {printf "%.4f", s / c}')"
      else
        note "$1 $tool: $calls calls, ${count:-no} system calls: not counted"
      fi
    done
  done
}

# Resident memory with most connections idle: each response takes a second.
memory() {
  local round conns rss few
  start_null memory --delay-us 1000000; at_null; CORE=$CLI_CORE LIMIT=30
  for round in $(seq "$MEMORY_ROUNDS"); do
    few=
    for conns in 64 5000 19000; do
      if [ $((conns + 200)) -gt "$(ulimit -n)" ]; then note "memory: $conns connections do not fit into ulimit -n $(ulimit -n)"; continue; fi
      CMD=("$LOADSTONE_BIN" run -c "$conns" -d 5s --threads 1 --cpus "$CORE" --quiet "http://$ADDR$REQ")
      metered memory "$round" "loadstone@$conns" || continue
      rss=$(awk -F'\t' -v x="loadstone@$conns" -v r="$round" '$1 == "memory" && $2 == r && $3 == x && $4 == "rss_kib" {print $5}' "$RAW")
      # what the program takes with 64 is no connection's
      if [ "$conns" = 64 ]; then few=$rss
      elif [ -n "$few" ]; then figure memory "$round" "loadstone@$conns" kib_per_connection \
        "$(awk -v r="$rss" -v c="$conns" -v f="$few" 'BEGIN {printf "%.3f", (r - f) / (c - 64)}')"
      fi
      CMD=(wrk -t1 -c"$conns" -d5s --timeout 5s "http://$ADDR$REQ")
      [ "$conns" = 19000 ] || ! command -v wrk >/dev/null || metered memory "$round" "wrk@$conns"
    done
  done
}

# How late each arrival was against an even schedule, as the server saw it. Our plain first call comes
# before the schedule and is left out.
pace_of() { # round tool rate skip
  local said
  sleep 1.3 # the server starts a new run after a second without requests
  # 4: the run found itself late. How late is what this table is about.
  local ACCEPTED="0 4"
  metered pace-cpu "$1" "$2@$3" || return 0
  said=$(curl -s "http://$ADDR/__pace/$3/$4" | grep '^n ')
  [ -n "$said" ] || { note "pace $2@$3: the server saw nothing"; return; }
  awk -v OFS='\t' -v r="$1" -v x="$2@$3" '{
    late = 0
    for (i = 1; i <= NF; i++) {
      if ($i == "late") late = 1; if ($i == "gaps") late = 0
      if ($i == "rate") print "pace", r, x, "sent_per_s", $(i + 1) + 0
      if (late && $i ~ /^(p50|p99|max)$/) print "pace", r, x, "late_" $i "_us", $(i + 1)
    }}' <<<"$said" >>"$RAW"
}
pace() {
  local round rate
  start_null pace --delay-us 1000 --spin; at_null; CORE=$CLI_CORE LIMIT=$((PACE_SECS + 12))
  for round in $(seq "$ROUNDS"); do
    for rate in $PACE_RATES; do
      [ "$round" -le "$PACE_ROUNDS" ] || [ "$rate" = "$PACE_BUDGET" ] || continue
      CMD=("${REALTIME[@]}" "$WORK/target/release/openref" "$ADDR" "$REQ" "$rate" "$PACE_SECS" --conns 2000)
      pace_of "$round" reference "$rate" 0
      CMD=("${REALTIME[@]}" "$LOADSTONE_BIN" run --rate "$rate/s" -d "${PACE_SECS}s" --threads 1 --cpus "$CORE" --quiet "http://$ADDR$REQ")
      pace_of "$round" loadstone "$rate" 1
    done
  done
  kill "$NULLPID" # it spins, and would take its core from the tables that follow
}

# How fast our site serves a small static file: nginx and the norm site with the same file on the same
# core, one after the other, asked by the same client.
site() {
  local round server out rate dir="$WORK/norm" pid url
  rm -rf "$dir"
  "$LOADSTONE_BIN" site --init "$dir" >/dev/null || { note "site: cannot write $dir"; return; }
  cp "$WEB/index.html" "$dir/htdocs/small.html"
  "$LOADSTONE_BIN" site --norm "$dir" --listen 127.0.0.1:0 --cpus "$SRV_CORE" >"$WORK/log/norm.out" 2>&1 &
  pid=$!; STARTED+=("$pid")
  for _ in $(seq 100); do url=$(head -1 "$WORK/log/norm.out"); [ -n "$url" ] && break; sleep 0.05; done
  [ -n "$url" ] || { note "site: the norm site did not start: $WORK/log/norm.out"; return; }
  for round in $(seq "$ROUNDS"); do
    for server in nginx norm; do
      out=http://127.0.0.1:$P1/index.html; [ $server = norm ] && out=$url/small.html
      rate=$(taskset -c "$CLI_CORE" wrk -t1 -c"$CONNS" -d"${SECS}s" "$out" | awk '/Requests\/sec/ {print $2} /Non-2xx|Socket errors/ {bad = 1} END {if (bad) print "bad"}')
      case $rate in *bad* | "") note "site $server round $round: failures, not counted" ;; *) figure site "$round" "$server" calls_per_s "$rate" ;; esac
    done
  done
  kill "$pid"
}

# A megabyte a call, 8 connections.
bulk() {
  local CONNS=8 REQ=/megabyte
  head -c 1000000 /dev/zero | tr '\0' x >"$WEB/megabyte"
  rounds bulk wrk loadstone loadstone-batches own own-batches
}

# Tables that a server's congestion control has a part in, where it is Reno: docs/decisions/0065.
reno() {
  local inside=(unshare --net)
  [ "$(id -u)" = 0 ] || inside+=(--map-root-user)
  CONGESTION=reno "${inside[@]}" ./run.sh keepalive many one nginx close bulk || note "reno: not measured"
}

main() {
  local table
  [ -x "$LOADSTONE_BIN" ] || { note "no $LOADSTONE_BIN: cargo build --profile dist -p loadstone, or set LOADSTONE_BIN"; exit 2; }
  local needed; for needed in nginx curl openssl; do
    command -v $needed >/dev/null || { note "$needed is not installed: ./peers.sh install"; exit 2; }
  done
  cargo build --quiet --release --manifest-path "$HERE/limit/Cargo.toml" || exit 1
  ulimit -n "$(ulimit -Hn)" 2>/dev/null
  if [ -n "${CONGESTION:-}" ]; then
    ip link set lo up && echo "$CONGESTION" >/proc/sys/net/ipv4/tcp_congestion_control || exit 1
  else
    : >"$RAW"; facts
  fi
  start_servers
  PERF=false; perf stat -e raw_syscalls:sys_enter -o /dev/null true >/dev/null 2>&1 && PERF=true
  $PERF || fact syscalls "counted by strace, which slows the client: batches are smaller than in a real run"
  start_null epoll; local null_pid=$NULLPID null_port=$NULLPORT
  [ $# -gt 0 ] || set -- keepalive many one nginx close bulk tls depth16 syscalls memory pace site http2 http2-tls http2-memory http3 reno
  for table in "$@"; do
    NULLPID=$null_pid NULLPORT=$null_port
    case $table in
    keepalive) at_null; rounds keepalive bare bare-uring wrk h2load oha gcannon loadstone loadstone-batches own own-batches ;;
    many) at_null; CONNS=5000 rounds many bare wrk loadstone loadstone-batches own own-calls own-batches ;;
    one) at_null; CONNS=1 rounds one bare wrk loadstone loadstone-batches own own-calls own-batches ;;
    nginx) at_nginx; rounds nginx bare httperf wrk ab oha gcannon k6 loadstone loadstone-batches own ;;
    close) at_nginx; rounds close bare wrk ab oha loadstone loadstone-batches own own-calls own-batches ;;
    bulk) at_nginx; bulk ;;
    tls) at_nginx; rounds tls wrk ab h2load oha loadstone ;;
    depth16) at_null; rounds depth16 bare bare-uring h2load loadstone loadstone-batches ;;
    syscalls) at_null; syscalls syscalls-null; at_nginx; syscalls syscalls-nginx ;;
    memory) memory ;;
    pace) pace ;;
    site) site ;;
    http2) http2 ;;
    http2-tls) http2_tls ;;
    http2-memory) http2_memory ;;
    http3) http3 ;;
    reno) reno ;;
    *) note "no such table: $table"; exit 2 ;;
    esac
  done
  echo "raw: $RAW"
}
main "$@"
