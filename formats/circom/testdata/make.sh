#!/usr/bin/env bash
# Makes the files under bn128/ and bls12381/ from the circom sources beside it:
# constraint system, witness calculator, witness, proving key, verification
# key, and a proof by snarkjs with its public signals and calldata.
#
# The keys come from a toy ceremony with one contribution whose entropy is
# written below: they are good for tests only, anybody can forge proofs for
# them. Needs node and npm; a few minutes. Nothing else in the repository does.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-audit --no-fund snarkjs@0.7.6 circom2@0.2.23 >npm.log 2>&1
snarkjs() { node "$work/node_modules/snarkjs/build/cli.cjs" "$@"; }

for curve in bn128 bls12381; do
  out="$here/$curve"
  mkdir -p "$out" "$curve"
  cp "$here"/*.circom "$curve/"

  snarkjs powersoftau new "$curve" 9 p0.ptau
  snarkjs powersoftau contribute p0.ptau p1.ptau --name=toy -e=toy
  snarkjs powersoftau prepare phase2 p1.ptau "$curve.ptau"

  for name in vault silent; do
    (cd "$curve" && ../node_modules/.bin/circom2 "$name.circom" --O2 --r1cs --wasm --prime "$curve")
    cp "$curve/$name.r1cs" "$curve/${name}_js/$name.wasm" "$out/"
    snarkjs wtns calculate "$out/$name.wasm" "$here/$name.json" "$out/$name.wtns"
    snarkjs groth16 setup "$out/$name.r1cs" "$curve.ptau" "$name.0.zkey"
    snarkjs zkey contribute "$name.0.zkey" "$out/$name.zkey" --name=toy -e=toy
    snarkjs zkey export verificationkey "$out/$name.zkey" "$out/$name.vkey.json"
    snarkjs groth16 prove "$out/$name.zkey" "$out/$name.wtns" "$out/$name.proof.json" "$out/$name.public.json"
    snarkjs groth16 verify "$out/$name.vkey.json" "$out/$name.public.json" "$out/$name.proof.json"
    snarkjs zkey export soliditycalldata "$out/$name.public.json" "$out/$name.proof.json" >"$out/$name.calldata"
  done
done
