#!/bin/sh
# Writes the assembly and its Go stubs. Run by go generate in the parent folder.
set -e
cd "$(dirname "$0")"
for k in g1_381 g2_381 g1_254 g2_254 fr_381 fr_254 vec_fp381 vec_fp254 vec_fr381 vec_fr254 sort; do
	go run . -kernel "$k" -out "../${k}_amd64.s" -stubs "../${k}_amd64.go" -pkg ifma
done
