#!/usr/bin/env bash
# What one request costs in existing HTTP load generators, all against the same local nginx.
# Loopback only. See README.md.
#
#   ./peers.sh install                      apt, cargo, go, npm: the peers, and our own meter
#   ./peers.sh run [TABLE...]               tables: keepalive close tls h2 memory syscalls limit
#   ./peers.sh summary FILE.tsv             Markdown tables from a raw file
#   ./peers.sh serve                        only start the servers and print the ports
#
# LOADSTONE='path/to/loadstone -c {conns} -d {secs}s {url}' adds our tool to keepalive, tls, memory
# and syscalls; LOADSTONE_CLOSE and LOADSTONE_H2 (same placeholders) to those tables.
set -u
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/loadstone-peers}
SECS=${SECS:-6} REPS=${REPS:-3} CONNS=${CONNS:-64} MEMCONNS=${MEMCONNS:-5000} CLOSEN=${CLOSEN:-20000}
SRV_CORE=${SRV_CORE:-0} CLI_CORE=${CLI_CORE:-1} PORT=${PORT:-18080} REQ=${REQ:-/hw} AHEAD=${AHEAD---ahead}
TOOLS=${TOOLS:-wrk h2load ab siege httperf oha rewrk hey bombardier vegeta fortio k6 autocannon}
mkdir -p "$WORK"/{bin,log,tmp}
export PATH="$WORK/bin:$WORK/cargo/bin:$WORK/node_modules/.bin:$PATH:/usr/sbin:/sbin"
export K6_NO_USAGE_REPORT=true CARGO_TARGET_DIR="$WORK/target"
MET="$WORK/target/release/meter" LOOP="$WORK/target/release/limitloop" NULLS="$WORK/target/release/nullserver"
STARTED=()
WEB=
cleanup() { local p; for p in ${STARTED[@]+"${STARTED[@]}"}; do kill "$p" 2>/dev/null; done; [ -z "$WEB" ] || rm -rf "$WEB"; }
trap cleanup EXIT

install_all() {
  # keep the packaged nginx from starting a server of its own
  local pol=/usr/sbin/policy-rc.d made=0
  [ -e $pol ] || { printf '#!/bin/sh\nexit 101\n' >$pol && chmod +x $pol && made=1; }
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    wrk apache2-utils siege httperf nghttp2-client nginx-light linux-perf openssl
  [ $made = 1 ] && rm -f $pol
  cargo build --release --manifest-path "$HERE/limit/Cargo.toml"
  cargo install --locked --root "$WORK/cargo" oha
  cargo install --locked --root "$WORK/cargo" rewrk
  npm install --silent --prefix "$WORK" autocannon
  local m
  for m in github.com/rakyll/hey@latest go.k6.io/k6@latest fortio.org/fortio@v1.63.9; do
    GOBIN="$WORK/bin" go install $m || echo "not installed: $m"
  done
  # these two by version from a throw-away module
  gobuild vegeta github.com/tsenart/vegeta/v12 v12.12.0
  gobuild bombardier github.com/codesenberg/bombardier v1.2.6
}
gobuild() {
  local d="$WORK/tmp/go-$1"; mkdir -p "$d"
  printf 'module x\ngo 1.22\nrequire %s %s\n' "$2" "$3" >"$d/go.mod"
  printf '//go:build tools\npackage x\nimport _ "%s"\n' "$2" >"$d/tools.go"
  (cd "$d" && GOFLAGS="-mod=mod -buildvcs=false" go build -o "$WORK/bin/$1" "$2") || echo "not installed: $1"
}

free_port() { # first port from $1 on that nothing listens on
  local p=$1
  while (exec 3<>/dev/tcp/127.0.0.1/$p) 2>/dev/null; do p=$((p + 1)); done
  echo $p
}

start_servers() {
  P1=$(free_port "$PORT"); P2=$(free_port $((P1 + 1))); P3=$(free_port $((P2 + 1))); P4=$(free_port $((P3 + 1)))
  [ -e "$WORK/key.pem" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout "$WORK/key.pem" -out "$WORK/cert.pem" -days 365 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
  # nginx's worker is nobody, who may not read below a home directory
  WEB=$(mktemp -d) && chmod 755 "$WEB"
  head -c 957 /dev/zero | tr '\0' x >"$WEB/index.html"
  cat >"$WORK/nginx.conf" <<N
daemon off; master_process on; worker_processes 1; worker_rlimit_nofile $(ulimit -n);
pid $WORK/nginx.pid; error_log $WORK/log/nginx.log crit;
events { worker_connections 16000; multi_accept on; use epoll; }
http {
  access_log off; sendfile on; tcp_nodelay on; server_tokens off;
  keepalive_requests 1000000000; keepalive_timeout 1h;
  open_file_cache max=100 inactive=1h; open_file_cache_valid 1h;
  ssl_certificate $WORK/cert.pem; ssl_certificate_key $WORK/key.pem; ssl_protocols TLSv1.3;
  ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
  client_body_temp_path $WORK/tmp/b; proxy_temp_path $WORK/tmp/p; fastcgi_temp_path $WORK/tmp/f;
  uwsgi_temp_path $WORK/tmp/u; scgi_temp_path $WORK/tmp/s;
  server {
    listen 127.0.0.1:$P1 backlog=16384; listen 127.0.0.1:$P2 http2 backlog=16384;
    listen 127.0.0.1:$P3 ssl backlog=16384; listen 127.0.0.1:$P4 ssl http2 backlog=16384;
    root $WEB; default_type text/plain;
    location = /hw { return 200 "Hello, world!"; }
    location = /stub { stub_status; }
    location / { }
  }
}
N
  rm -f "$WORK/nginx.pid"
  taskset -c "$SRV_CORE" nginx -p "$WORK" -c "$WORK/nginx.conf" >"$WORK/log/nginx.out" 2>&1 &
  STARTED+=($!)
  local i; for i in 1 2 3 4 5 6 7 8 9 10; do [ -s "$WORK/nginx.pid" ] && break; sleep 0.2; done
  NGX=$(pgrep -P "$(cat "$WORK/nginx.pid")") || { cat "$WORK/log/nginx.out"; exit 1; }
  H1=http://127.0.0.1:$P1 H2C=http://127.0.0.1:$P2 S1=https://127.0.0.1:$P3 S2=https://127.0.0.1:$P4
  CNT=127.0.0.1:$P1/stub SRV=$NGX
  cat >"$WORK/k6.js" <<'N'
import http from 'k6/http';
export const options = { discardResponseBodies: true, insecureSkipTLSVerify: true,
  noConnectionReuse: __ENV.CLOSE === '1', scenarios: { s: __ENV.RATE
    ? { executor: 'constant-arrival-rate', rate: Number(__ENV.RATE), timeUnit: '1s', duration: __ENV.SECS + 's',
        preAllocatedVUs: Number(__ENV.VUS), maxVUs: Number(__ENV.MAXVUS || __ENV.VUS) }
    : __ENV.ITER
    ? { executor: 'shared-iterations', vus: Number(__ENV.VUS), iterations: Number(__ENV.ITER) }
    : { executor: 'constant-vus', vus: Number(__ENV.VUS), duration: __ENV.SECS + 's', gracefulStop: '1s' } },
  summaryTrendStats: ['min', 'med', 'p(90)', 'p(99)', 'p(99.9)', 'max'] };
export default function () { http.get(__ENV.URL); }
N
  printf 'connection = keep-alive\nprotocol = HTTP/1.1\nverbose = false\nquiet = true\nlogging = false\nlimit = 10000\nbenchmark = true\nparser = false\ncache = false\ngmethod = GET\n' >"$WORK/siege.keep"
  sed 's/^connection.*/connection = close/' "$WORK/siege.keep" >"$WORK/siege.close"
}

start_null() { # name args... -> NULLPID NULLPORT
  local n=$1; shift
  NULLPORT=$(free_port $((P4 + 1)))
  taskset -c "$SRV_CORE" "$NULLS" 127.0.0.1:$NULLPORT "$@" >"$WORK/log/null-$n.out" 2>&1 &
  NULLPID=$!; STARTED+=($NULLPID); sleep 0.3
}

fill() { # template url -> CMD
  local t=${1//\{url\}/$2}; t=${t//\{conns\}/$C}; t=${t//\{secs\}/$S}; t=${t//\{n\}/$CLOSEN}
  read -r -a CMD <<<"$t"
}

# CMD for a tool in a table with C connections and S seconds; false where it cannot do that
build() {
  local tool=$1 tab=$2 u hp; CMD=()
  local u=$H1$REQ; [ "$tab" = tls ] && u=$S1$REQ; [ "$tab" = memory ] && u=http://127.0.0.1:$NULLPORT/hw
  hp=${u#*//}; hp=${hp%%/*}
  printf 'GET %s\n' "$u" >"$WORK/target.txt"
  case $tab/$tool in
  keepalive/wrk | tls/wrk | memory/wrk | syscalls/wrk) CMD=(wrk -t1 -c$C -d${S}s $u) ;;
  close/wrk) CMD=(wrk -t1 -c$C -d2s -H "Connection: close" $u) ;;

  keepalive/h2load | tls/h2load | memory/h2load | syscalls/h2load) CMD=(h2load --h1 -t1 -c$C -D$S $u) ;;
  h2/h2load-h2c) CMD=(h2load -t1 -c$C -m1 -D$S $H2C$REQ) ;;
  h2/h2load-h2c-m16) CMD=(h2load -t1 -c4 -m16 -D$S $H2C$REQ) ;;
  h2/h2load-tls) CMD=(h2load -t1 -c$C -m1 -D$S $S2$REQ) ;;
  h2/h2load-tls-m16) CMD=(h2load -t1 -c4 -m16 -D$S $S2$REQ) ;;

  keepalive/ab | tls/ab | syscalls/ab) CMD=(ab -q -k -c $C -t $S -n 2000000 $u) ;;
  memory/ab) CMD=(ab -q -k -c $C -n $((C * 3)) $u) ;;
  close/ab) CMD=(ab -q -c $C -n $CLOSEN $u) ;;

  keepalive/siege | tls/siege | syscalls/siege) CMD=(siege -R "$WORK/siege.keep" -b -c $C -t ${S}S $u) ;;
  close/siege) CMD=(siege -R "$WORK/siege.close" -b -c $C -r $((CLOSEN / C)) $u) ;;

  keepalive/httperf | syscalls/httperf) CMD=(httperf --hog --server 127.0.0.1 --port ${hp#*:} --uri $REQ --num-conns $C --rate 10000 --num-calls $((S * 1600))) ;;
  close/httperf) CMD=(httperf --hog --server 127.0.0.1 --port ${hp#*:} --uri $REQ --num-conns $CLOSEN --rate 9000 --num-calls 1 --add-header 'Connection: close\n') ;;

  keepalive/oha | memory/oha | syscalls/oha) CMD=(oha --no-tui --worker-threads 1 -c $C -z ${S}s $u) ;;
  tls/oha) CMD=(oha --no-tui --worker-threads 1 --insecure -c $C -z ${S}s $u) ;;
  close/oha) CMD=(oha --no-tui --worker-threads 1 --disable-keepalive -c $C -n $CLOSEN $u) ;;
  h2/oha-h2c) CMD=(oha --no-tui --worker-threads 1 --http2 -c $C -p 1 -z ${S}s $H2C$REQ) ;;
  h2/oha-h2c-m16) CMD=(oha --no-tui --worker-threads 1 --http2 -c 4 -p 16 -z ${S}s $H2C$REQ) ;;
  h2/oha-tls) CMD=(oha --no-tui --worker-threads 1 --http2 --insecure -c $C -p 1 -z ${S}s $S2$REQ) ;;

  keepalive/rewrk | tls/rewrk | memory/rewrk | syscalls/rewrk) CMD=(rewrk -t 1 -c $C -d ${S}s -h $u) ;;

  keepalive/hey | tls/hey | memory/hey | syscalls/hey) CMD=(hey -z ${S}s -c $C $u) ;;
  close/hey) CMD=(hey -disable-keepalive -n $CLOSEN -c $C $u) ;;
  h2/hey-tls) CMD=(hey -h2 -z ${S}s -c $C $S2$REQ) ;;

  keepalive/bombardier | tls/bombardier | memory/bombardier | syscalls/bombardier) CMD=(bombardier -k -p r -c $C -d ${S}s $u) ;;
  close/bombardier) CMD=(bombardier -p r -H "Connection: close" -c $C -n $CLOSEN $u) ;;
  h2/bombardier-tls) CMD=(bombardier --http2 -k -p r -c $C -d ${S}s $S2$REQ) ;;

  keepalive/vegeta | tls/vegeta | syscalls/vegeta) CMD=(vegeta attack -insecure -http2=false -rate 0 -workers $C -max-workers $C -connections $C -duration ${S}s -targets "$WORK/target.txt" -output /dev/null) ;;
  memory/vegeta) CMD=(vegeta attack -rate $C -duration ${S}s -targets "$WORK/target.txt" -output /dev/null) ;;
  close/vegeta) CMD=(vegeta attack -keepalive=false -rate 0 -max-workers $C -duration 3s -targets "$WORK/target.txt" -output /dev/null) ;;
  h2/vegeta-tls) CMD=(vegeta attack -insecure -rate 0 -workers $C -max-workers $C -duration ${S}s -targets "$WORK/target-h2.txt" -output /dev/null); printf 'GET %s\n' "$S2$REQ" >"$WORK/target-h2.txt" ;;

  keepalive/fortio | tls/fortio | memory/fortio | syscalls/fortio) CMD=(fortio load -k -quiet -c $C -qps 0 -t ${S}s $u) ;;
  close/fortio) CMD=(fortio load -quiet -keepalive=false -c $C -qps 0 -n $CLOSEN $u) ;;
  h2/fortio-tls) CMD=(fortio load -k -h2 -stdclient -quiet -c $C -qps 0 -t ${S}s $S2$REQ) ;;

  keepalive/k6 | tls/k6 | memory/k6 | syscalls/k6) CMD=(k6 run -q -e URL=$u -e VUS=$C -e SECS=$S "$WORK/k6.js") ;;
  close/k6) CMD=(k6 run -q -e URL=$u -e VUS=$C -e CLOSE=1 -e ITER=$CLOSEN "$WORK/k6.js") ;;
  h2/k6-tls) CMD=(k6 run -q -e URL=$S2$REQ -e VUS=$C -e SECS=$S "$WORK/k6.js") ;;

  keepalive/autocannon | tls/autocannon | memory/autocannon | syscalls/autocannon) CMD=(autocannon -n -c $C -d $S $u) ;;
  close/autocannon) CMD=(autocannon -n -D 1 -c $C -a $CLOSEN $u) ;;

  keepalive/loadstone | tls/loadstone | memory/loadstone | syscalls/loadstone) [ -n "${LOADSTONE:-}" ] && fill "$LOADSTONE" $u ;;
  close/loadstone) [ -n "${LOADSTONE_CLOSE:-}" ] && fill "$LOADSTONE_CLOSE" $u ;;
  h2/loadstone) [ -n "${LOADSTONE_H2:-}" ] && fill "$LOADSTONE_H2" $H2C$REQ ;;

  keepalive/limit-et) CMD=("$LOOP" epoll-et 127.0.0.1:$P1 $REQ $S --conns $C) ;;
  keepalive/limit-uring) CMD=("$LOOP" uring-m 127.0.0.1:$P1 $REQ $S --conns $C) ;;
  close/limit-close) CMD=("$LOOP" close 127.0.0.1:$P1 $REQ 2 --conns $C) ;;
  limit/wrk) CMD=(wrk -t1 -c$C -d${S}s http://$LADDR/hw) ;;
  limit/oha) CMD=(oha --no-tui --worker-threads 1 -c $C -z ${S}s http://$LADDR/hw) ;;
  limit/h2load) CMD=(h2load --h1 -t1 -c$C -D$S http://$LADDR/hw) ;;
  limit/h2load-p16) CMD=(h2load --h1 -m16 -t1 -c$C -D$S http://$LADDR/hw) ;;
  limit/*-p16) CMD=("$LOOP" "${tool%-p16}" $LADDR /hw $S --conns $C --depth 16) ;;
  limit/*-w16) CMD=("$LOOP" "${tool%-w16}" $LADDR /hw $S --conns $C --want 16 --minwait-us 100) ;;
  limit/*) CMD=("$LOOP" "$tool" $LADDR /hw $S --conns $C) ;;
  esac
  [ ${#CMD[@]} -gt 0 ] && command -v "${CMD[0]}" >/dev/null
}

# run CMD once under the meter; again (twice at most) when neighbors took more than a fifth of a core
one() { # table rep tool
  local line try
  for try in 1 2 3; do
    line=$("$MET" --label "$3" --core "${CORE:-$CLI_CORE}" --limit "$LIMIT" --count "$CNT" --srv "$SRV" $AHEAD \
      --log "$WORK/log/$1-$3.out" -- "${CMD[@]}")
    awk -F'\t' '{exit !($13 > 0.2)}' <<<"$line" || break
  done
  printf '%s\t%s\t%s\n' "$1" "$2" "$line" | tee -a "$RAW" >&2
}

table() {
  local tab=$1 rep t i a; shift; a=("$@")
  C=$CONNS S=$SECS LIMIT=$((SECS + 4))
  for rep in $(seq "$REPS"); do
    for ((i = 0; i < $#; i++)); do # each round starts elsewhere: no tool is always first
      t=${a[(i + (rep - 1) * 5) % $#]}
      build "$t" "$tab" && one "$tab" "$rep" "$t"
    done
  done
}

run_tables() {
  [ -x "$MET" ] || cargo build --release --manifest-path "$HERE/limit/Cargo.toml" || exit 1
  start_servers
  RAW=${RAW:-$WORK/raw-$(date +%Y%m%d-%H%M%S).tsv}
  local ls= t; [ -n "${LOADSTONE:-}${LOADSTONE_CLOSE:-}${LOADSTONE_H2:-}" ] && ls=loadstone
  [ $# -gt 0 ] || set -- keepalive close tls h2 memory
  for t in "$@"; do
    case $t in
    keepalive) table keepalive $ls limit-et limit-uring $TOOLS ;;
    close) table close $ls limit-close $TOOLS ;;
    tls) table tls $ls $TOOLS ;;
    h2) table h2 $ls h2load-h2c oha-h2c h2load-h2c-m16 oha-h2c-m16 h2load-tls oha-tls hey-tls bombardier-tls vegeta-tls fortio-tls k6-tls ;;
    memory) # every response takes a second, so the connections are mostly idle
      start_null delay --delay-us 1000000
      local x c0=$CNT s0=$SRV; CNT=127.0.0.1:$NULLPORT/__count SRV=$NULLPID
      for x in $ls $TOOLS; do
        for C in "$CONNS" "$MEMCONNS"; do S=5 LIMIT=10; build $x memory && one memory "$C" $x; sleep 1; done
      done
      CNT=$c0 SRV=$s0 ;;
    syscalls)
      local x n r; C=$CONNS S=2
      for x in $ls $TOOLS; do
        build $x syscalls || continue
        n=$(nginx_requests)
        r=$(timeout 8 taskset -c "$CLI_CORE" perf stat -x, -e raw_syscalls:sys_enter -o "$WORK/log/perf.out" "${CMD[@]}" >/dev/null 2>&1; awk -F, '/sys_enter/{print $1}' "$WORK/log/perf.out")
        n=$(($(nginx_requests) - n - 1))
        printf 'syscalls\t1\t%s\t%s\t%s\t%s\n' "$x" "$n" "$r" "$(awk -v r="$r" -v n="$n" 'BEGIN{printf "%.2f", r/n}')" | tee -a "$RAW" >&2
      done ;;
    limit) # variants of the bare loop, interleaved with three peers, against nginx and the null server
      local v="epoll-lt epoll-et epoll-sr rr uring-1 uring-1d uring-1pf uring-fix uring-m uring-mc uring-m-w16 epoll-et-p16 uring-m-p16 h2load-p16 wrk oha h2load"
      local rep x c0=$CNT s0=$SRV; start_null epoll
      C=$CONNS S=$SECS LIMIT=$((SECS + 4))
      for rep in $(seq "$REPS"); do
        for x in $v; do
          LADDR=127.0.0.1:$P1 CNT=$c0 SRV=$s0; build $x limit && one limit-nginx "$rep" $x
          LADDR=127.0.0.1:$NULLPORT CNT=127.0.0.1:$NULLPORT/__count SRV=$NULLPID; build $x limit && one limit-null "$rep" $x
          # client on the server's core: no cross-core wakeups, the largest batches
          CORE=$SRV_CORE; build $x limit && one limit-samecore "$rep" $x; unset CORE
        done
      done
      CNT=$c0 SRV=$s0 ;;
    *) echo "no such table: $t" >&2; exit 2 ;;
    esac
  done
  echo "raw: $RAW"; summary "$RAW"
}
nginx_requests() { # accepts handled requests
  local l; exec 3<>/dev/tcp/127.0.0.1/$P1
  printf 'GET /stub HTTP/1.0\r\n\r\n' >&3
  while read -r l <&3; do set -- $l; [ $# = 3 ] && [[ $1$2$3 =~ ^[0-9]+$ ]] && echo "$3"; done
  exec 3>&-
}

# medians; spread is (max-min)/median of the CPU cost; x wrk is the median of per-round ratios
summary() {
  awk -F'\t' '
  function med(s,  a, n, i, j, t) { n = split(s, a, " "); for (i = 2; i <= n; i++) { t = a[i] + 0; for (j = i - 1; j > 0 && a[j] + 0 > t; j--) a[j + 1] = a[j]; a[j + 1] = t }
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
  function rng(s,  a, n, i, lo, hi) { n = split(s, a, " "); lo = hi = a[1] + 0; for (i = 2; i <= n; i++) { if (a[i] + 0 < lo) lo = a[i] + 0; if (a[i] + 0 > hi) hi = a[i] + 0 } return hi - lo }
  $1 == "memory" { if (!($3 in mo)) { mo[$3] = ++mn; mname[mn] = $3 } mem[$3, $2] = $10; mreq[$3, $2] = $5; macc[$3, $2] = $18; if ($2 + 0 > big) big = $2 + 0; if (!small || $2 + 0 < small) small = $2 + 0; next }
  $1 == "syscalls" { sysl = sysl sprintf("| %s | %s |\n", $3, $6); next }
  { k = $1 SUBSEP $3; if (!(k in seen)) { seen[k] = 1; ord[++n] = k; if (!($1 in ts)) { ts[$1] = 1; tabs[++nt] = $1 } }
    cpu[k] = cpu[k] " " $9; us[k] = us[k] " " $7; sy[k] = sy[k] " " $8; rps[k] = rps[k] " " $6; rss[k] = rss[k] " " $10
    cu[k] = cu[k] " " $13; su[k] = su[k] " " $14; acc[k] = acc[k] " " $18 / ($5 ? $5 : 1); fo[k] = fo[k] " " $15
    at[$1, $2, $3] = $9; if ($2 + 0 > reps[$1]) reps[$1] = $2 + 0; if ($17 != "0") bad[k] = bad[k] " " $17 }
  END {
    for (t = 1; t <= nt; t++) {
      printf "\n### %s\n\n| tool | req/s | CPU us/req | user | sys | spread | x wrk | max RSS MiB | client busy | server busy | conns/req | note |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n", tabs[t]
      for (i = 1; i <= n; i++) { split(ord[i], p, SUBSEP); if (p[1] != tabs[t]) continue; k = ord[i]; r = ""
        for (j = 1; j <= reps[p[1]]; j++) if (at[p[1], j, "wrk"] > 0 && at[p[1], j, p[2]] > 0) r = r " " at[p[1], j, p[2]] / at[p[1], j, "wrk"]
        printf "| %s | %.0f | %.2f | %.2f | %.2f | %.0f%% | %s | %.1f | %.2f | %.2f | %.3f | %s |\n", p[2], med(rps[k]), med(cpu[k]), med(us[k]), med(sy[k]), 100 * rng(cpu[k]) / med(cpu[k]), r == "" ? "-" : sprintf("%.2f", med(r)), med(rss[k]) / 1024, med(cu[k]), med(su[k]), med(acc[k]), bad[k] == "" ? "" : "exit" bad[k] } }
    if (mn) { printf "\n### memory\n\n| tool | RSS MiB at %d | RSS MiB at %d | KiB per connection | connections opened | responses |\n|---|--:|--:|--:|--:|--:|\n", small, big
      for (i = 1; i <= mn; i++) { x = mname[i]; printf "| %s | %.1f | %.1f | %.1f | %d | %d |\n", x, mem[x, small] / 1024, mem[x, big] / 1024, (mem[x, big] - mem[x, small]) / (big - small), macc[x, big], mreq[x, big] } }
    if (sysl) printf "\n### syscalls per request\n\n| tool | syscalls/req |\n|---|--:|\n%s", sysl
  }' "$1"
}

# run.sh takes its servers from here
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0
case ${1:-} in
install) install_all ;;
run) shift; run_tables "$@" ;;
summary) summary "$2" ;;
serve) start_servers; echo "http $P1 h2c $P2 tls $P3 tls-h2 $P4 worker $NGX"; wait ;;
*) sed -n '2,13p' "$0"; exit 2 ;;
esac
