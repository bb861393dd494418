package main

// A gnark constraint system names the hints that its solver calls, but does not
// hold them: their code has to be in the program. A circuit compiled elsewhere
// can therefore be proved only if its hints are linked in here. These packages
// of gnark's standard library register theirs when they are imported. std.RegisterHints
// would bring them all, but parts of it do not build with the gnark-crypto that
// go.mod names (evmprecompiles, and the emulated and 2-chain curves).
// docs/cli.md lists what works; a hint of one's own needs the Go API.
import (
	_ "github.com/consensys/gnark/std/algebra/native/twistededwards"
	_ "github.com/consensys/gnark/std/conversion"
	_ "github.com/consensys/gnark/std/hash/sha2"
	_ "github.com/consensys/gnark/std/hash/sha3"
	_ "github.com/consensys/gnark/std/lookup/logderivlookup"
	_ "github.com/consensys/gnark/std/math/bits"
	_ "github.com/consensys/gnark/std/math/bitslice"
	_ "github.com/consensys/gnark/std/math/cmp"
	_ "github.com/consensys/gnark/std/math/emulated"
	_ "github.com/consensys/gnark/std/math/uints"
	_ "github.com/consensys/gnark/std/rangecheck"
	_ "github.com/consensys/gnark/std/selector"
)
