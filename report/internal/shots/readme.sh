#!/bin/sh
# Makes the pictures of docs/img anew: records the demonstration, draws it, sweeps
# over it in simulation, and photographs the pages. Takes Chromium, and half a
# minute on a machine with two cores.
set -eu
cd "$(dirname "$0")/../../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -o "$tmp/snarkline" ./cmd/snarkline
go build -o "$tmp/shots" ./report/internal/shots
"$tmp/snarkline" demo --quiet --partitions 16 --log-constraints 15 --budget 150MiB --set synthesize.workers=3 \
	--set prestage.capacity=3 --set ntt.capacity=3 --set batch-add.capacity=3 --set b_g2_msm.capacity=3 --trace "$tmp/run.trace"
"$tmp/snarkline" report "$tmp/run.trace"
"$tmp/snarkline" sweep --quiet synthesize.workers=1..4 h-msm.workers=1..3 batch-add.workers=1..3 all.capacity=1,2,4 \
	budget.host=50MiB,100MiB,200MiB cores=4 --from "$tmp/run.trace" --items 24 --html "$tmp/sweep.html" >/dev/null
mkdir -p docs/img
"$tmp/shots" -width 1280 -height 1130 -at '#graph' "$tmp/run.html" docs/img/report.png
"$tmp/shots" -width 400 -height 960 -at .memory -scheme dark "$tmp/run.html" docs/img/report-dark.png
"$tmp/shots" -width 1280 -height 1110 "$tmp/sweep.html" docs/img/sweep.png
