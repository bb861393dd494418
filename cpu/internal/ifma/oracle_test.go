package ifma

import "github.com/consensys/gnark-crypto/ecc"

// serial keeps gnark-crypto on one core, for comparisons.
var serial = ecc.MultiExpConfig{NbTasks: 1}
