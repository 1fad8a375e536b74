#!/usr/bin/env bash
# bench/soak.sh - a crowd of streaming clients through `redecode serve` and through `redecode record
# --proxy`, slow readers and random disconnects among them; every answer is checked, memory and
# descriptors are measured, and the trace is replayed and compared with what was recorded.
#
#   bench/soak.sh BINARY [SECONDS [CLIENTS]]        build/release/bin/redecode 120 1000
#
# Ends with 0 when no answer was wrong, nothing grew, the trace is sound and replays bit for bit.
set -euo pipefail

binary=$1
seconds=${2:-120}
clients=${3:-1000}
work=$(mktemp -d)
serve=0 proxy=0 failed=0

finish() {
  for pid in $proxy $serve; do [ "$pid" = 0 ] || kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT

say() { printf '%s\n' "$*"; }
expect() {  # expect WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$work/out" 2>&1; then say "ok    $what"; else
    say "FAIL  $what"
    failed=1
  fi
  sed 's/^/      /' "$work/out"
}

rss_kib() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
descriptors() { find "/proc/$1/fd" -mindepth 1 | wc -l; }

# Samples a process every 5 s while the load runs: SECOND RSS_KIB DESCRIPTORS.
watch_process() {  # watch_process PID FILE
  local start=$SECONDS
  while kill -0 "$1" 2>/dev/null; do
    printf '%s %s %s\n' $((SECONDS - start)) "$(rss_kib "$1")" "$(descriptors "$1")" >>"$2"
    sleep 5
  done
}

# The load: one in three reads slowly, one in five disconnects before or early in its answer.
crowd() {  # crowd PORT
  "$binary" traffic --target "http://127.0.0.1:$1" --sessions "$clients" --rounds 1 --ctx 64 \
    --max-tokens 24 --temperature 1 --concurrency "$clients" --for-s "$seconds" --slow-reader 2000 \
    --slow-percent 33 --disconnect-rate 20 --timeout-s 300 --check-answers "$work/good.json" --quiet
}

soak() {  # soak NAME PORT PID
  local name=$1 port=$2 pid=$3 before after watcher
  before="$(rss_kib "$pid") $(descriptors "$pid")"
  : >"$work/$name.samples"
  watch_process "$pid" "$work/$name.samples" &
  watcher=$!
  expect "$name: $clients clients, $seconds s" crowd "$port"
  sleep 7  # idle connections close
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  after="$(rss_kib "$pid") $(descriptors "$pid")"
  say "      before: $before (KiB resident, descriptors), after: $after"
  say "      second, KiB resident, descriptors:"
  sed 's/^/        /' "$work/$name.samples"
  # Half way through everything has been touched: what grows after that grows with time.
  expect "$name: descriptors are back" test "${after#* }" -le $((${before#* } + 4))
  expect "$name: memory no more than 10 % above what it was half way" awk -v after="${after% *}" \
    '{rss[NR] = $2} END {exit !(NR > 3 && after <= rss[int(NR / 2)] * 1.1)}' "$work/$name.samples"
}

"$binary" serve --model llama-small --max-batch 64 --page-count 4096 --record "$work/serve.rdt" \
  --max-waiting 8192 --max-connections 8192 --port 0 --port-file "$work/port" --json \
  >"$work/serve.json" 2>"$work/serve.err" &
serve=$!
until [ -s "$work/port" ]; do sleep 0.1; done
port=$(cat "$work/port")

say "each prompt alone, one after the other:"
"$binary" traffic --target "http://127.0.0.1:$port" --sessions "$clients" --rounds 1 --ctx 64 \
  --max-tokens 24 --temperature 1 --concurrency 1 --save "$work/good.json" --quiet | sed 's/^/      /'
say "      $(grep -o '"digest":"[0-9a-f]*"' "$work/good.json" | sort -u | wc -l) different answers"

soak serve "$port" "$serve"

"$binary" record --proxy --upstream "http://127.0.0.1:$port" --listen 127.0.0.1:0 \
  -o "$work/proxy.rdt" --json >"$work/proxy.json" 2>"$work/proxy.err" &
proxy=$!
until grep -qs listening "$work/proxy.err"; do sleep 0.1; done
soak proxy "$(sed -n 's/.*listening on http:\/\/127.0.0.1:\([0-9]*\).*/\1/p' "$work/proxy.err")" "$proxy"

kill -TERM "$proxy"
wait "$proxy" || failed=1
proxy=0
kill -TERM "$serve"
wait "$serve" || failed=1
serve=0
say "serve said: $(cat "$work/serve.json")"
say "proxy said: $(cat "$work/proxy.json")"
expect "the trace of serve is sound" "$binary" trace verify "$work/serve.rdt"
expect "the trace of the proxy is sound" "$binary" trace verify "$work/proxy.rdt"
expect "the trace of serve replays bit for bit" "$binary" replay "$work/serve.rdt" --no-check \
  --check-recorded --quiet
exit $failed
