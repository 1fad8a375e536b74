#!/usr/bin/env bash
# bench/witnesses.sh - every defect: its check, the order that fails each time, and fifo beside it.
#   bench/witnesses.sh BIN [REPEATS]
set -euo pipefail
BIN=$1 REPEATS=${2:-100}
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
"$BIN" record -o "$DIR/t.rdt" --sessions 20 --rounds 2 --ctx 120 --max-tokens 12 --temperature 0.8 \
  --quiet >/dev/null
printf '%-24s %-18s %-6s %-44s %-10s %s\n' defect check step witness fails fifo
for defect in early-free dropped-join dropped-fork rerecorded-event baked-position baked-branch \
  stale-pad-tail moved-workspace page-size-other-dtype block-freed-in-flight reused-pinned \
  missing-pdl-wait frozen-sampler-offset split-by-batch racy-topk-ties unwritten-scratch \
  overlapping-graphs late-kv-handover; do
  "$BIN" explore "$DIR/t.rdt" --streams multi --capture graph --inject "$defect" --orders 20 \
    --repeats "$REPEATS" --quiet --json >"$DIR/out.json" || true
  python3 - "$defect" "$DIR/out.json" <<'P'
import json, sys
d = json.load(open(sys.argv[2]))
checks = ",".join(dict.fromkeys(f["check"] for f in d["findings"])) or "-"
w, f = d["witness_runs"], d["fifo_runs"]
print("%-24s %-18s %-6s %-44s %-10s %s" % (sys.argv[1], checks[:18], d["step"], (d["witness"] or "-")[:44],
      "%d/%d" % (w["wrong"], w["tried"]), "%d/%d" % (f["wrong"], f["tried"])))
P
done
