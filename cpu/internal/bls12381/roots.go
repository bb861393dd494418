package bls12381

import (
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// maxKept is log2 of the largest domain whose tables are kept. Making one takes
// as long as one level of a transform, a sixteenth at 2^16; beyond 2^20 it is
// too large to be held by an engine that nobody closes.
const maxKept = 20

// roots keeps the tables of this package's transforms for the two roots used
// last, as a rule a domain's and its inverse. They are public, on Go's heap, 16 n
// bytes each.
type roots struct {
	mu   sync.Mutex
	last [2]rootTable // the latest first
}

type rootTable struct {
	log   int
	root  fr.Element
	table fr.Vector
}

// of is the table for root in transforms of t's size, which t's workers make if
// it is not there. Nobody writes to it afterwards.
func (r *roots) of(t *transform, root fr.Element) fr.Vector {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, have := range r.last {
		if have.table != nil && have.log == t.log && have.root == root {
			r.last[0], r.last[i] = have, r.last[0]
			return have.table
		}
	}
	made := transform{log: t.log, workers: t.workers, table: make(fr.Vector, max(1, 1<<t.log>>1))}
	made.build(root)
	r.last[0], r.last[1] = rootTable{t.log, root, made.table}, r.last[0]
	return made.table
}
