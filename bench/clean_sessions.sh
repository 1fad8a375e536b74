#!/usr/bin/env bash
# bench/clean_sessions.sh - false alarms: sessions without a defect, replayed in every mode with all
# structural checks, against an eager golden run.
#   bench/clean_sessions.sh BIN [SESSIONS_A_MODE]     (default 250: 3,000 sessions over 12 modes)
set -euo pipefail
BIN=$1 SESSIONS=${2:-250}
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
total=0 bad=0
for key in bf16 fp8 fp4; do
  "$BIN" record -o "$DIR/$key.rdt" --index-key "$key" --sessions "$SESSIONS" --rounds 1 --ctx 60 \
    --max-tokens 10 --quiet >/dev/null
  golden=$("$BIN" replay "$DIR/$key.rdt" --quiet --json | grep -o '"digest":"[0-9a-f]*"')
  for streams in single multi; do
    for capture in eager graph; do
      for order in paced:7; do
        rc=0
        out=$("$BIN" replay "$DIR/$key.rdt" --streams "$streams" --capture "$capture" \
          --order "$order" --canary --quiet --json) || rc=$?
        same=$(grep -o '"digest":"[0-9a-f]*"' <<<"$out" || true)
        total=$((total + SESSIONS))
        verdict=clean
        if [ "$rc" != 0 ] || [ "$same" != "$golden" ]; then verdict="NOT CLEAN (rc $rc)" bad=$((bad + 1)); fi
        echo "$key $streams $capture $order: $SESSIONS sessions, $verdict"
      done
    done
  done
done
echo "$total sessions, $bad modes with a finding or another digest"
[ "$bad" = 0 ]
