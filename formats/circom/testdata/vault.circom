pragma circom 2.0.0;

// A small circuit to test and to show with: two coins lie side by side in one
// leaf of a Merkle tree; their amounts fit in a range and add up to a public
// total. The hash is a toy (a short MiMC-like permutation): do not use it for
// anything that has to be secure.

// One constant a round, by a quadratic map, so that the text holds for any field.
function constant(round) {
    var c = 11;
    for (var i = 0; i <= round; i++) {
        c = c * c + 7 * i + 3;
    }
    return c;
}

// Permute is x ↦ E_key(x): rounds of x ↦ (x + key + constant)^5.
template Permute(rounds) {
    signal input x;
    signal input key;
    signal output out;

    signal square[rounds];
    signal fourth[rounds];
    signal state[rounds + 1];

    state[0] <== x;
    for (var i = 0; i < rounds; i++) {
        square[i] <== (state[i] + key + constant(i)) * (state[i] + key + constant(i));
        fourth[i] <== square[i] * square[i];
        state[i + 1] <== fourth[i] * (state[i] + key + constant(i));
    }
    out <== state[rounds] + key;
}

// Hash compresses two field elements to one, as Miyaguchi and Preneel do.
template Hash(rounds) {
    signal input left;
    signal input right;
    signal output out;

    component permute = Permute(rounds);
    permute.x <== left;
    permute.key <== right;
    out <== permute.out + left + right;
}

// Range holds in to [0, 2^bits).
template Range(bits) {
    signal input in;
    signal bit[bits];
    var sum = 0;
    for (var i = 0; i < bits; i++) {
        bit[i] <-- (in >> i) & 1;
        bit[i] * (bit[i] - 1) === 0;
        sum += bit[i] * (1 << i);
    }
    sum === in;
}

template Vault(depth, bits, rounds) {
    signal input total;            // public
    signal input coins[2][2];      // {owner, amount} each
    signal input siblings[depth];
    signal input side[depth];      // 1 where the path comes from the right
    signal output root;

    component coin[2];
    component range[2];
    for (var i = 0; i < 2; i++) {
        coin[i] = Hash(rounds);
        coin[i].left <== coins[i][0];
        coin[i].right <== coins[i][1];
        range[i] = Range(bits);
        range[i].in <== coins[i][1];
    }
    assert(coins[0][1] + coins[1][1] == total);
    coins[0][1] + coins[1][1] === total;

    signal node[depth + 1];
    signal swap[depth];
    component level[depth];

    component leaf = Hash(rounds);
    leaf.left <== coin[0].out;
    leaf.right <== coin[1].out;
    node[0] <== leaf.out;
    for (var i = 0; i < depth; i++) {
        side[i] * (side[i] - 1) === 0;
        swap[i] <== side[i] * (siblings[i] - node[i]);
        level[i] = Hash(rounds);
        level[i].left <== node[i] + swap[i];
        level[i].right <== siblings[i] - swap[i];
        node[i + 1] <== level[i].out;
    }
    root <== node[depth];
    log("root", root);
}

component main {public [total]} = Vault(3, 8, 12);
