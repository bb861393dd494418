#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each; stops at the first finding.
set -eu
GO=${GO:-go}
FUZZTIME=${FUZZTIME:-60s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | sort -u | while read -r target; do
		echo "== $dir $target ($FUZZTIME)"
		"$GO" test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 5s </dev/null
	done
done
