pragma circom 2.0.0;

// No public input and no output: the verifier learns only that the prover
// knows two factors of 1001 other than 1.
template Silent() {
    signal input p;
    signal input q;
    signal inverse;

    p * q === 1001;
    inverse <-- 1 / ((p - 1) * (q - 1));
    signal product;
    product <== (p - 1) * (q - 1);
    product * inverse === 1;
}

component main = Silent();
