package gnark

import (
	"errors"
	"fmt"

	gnark "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/constraint"

	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/groth16"
)

// checkSystem follows gnark's solver over a decoded system: what it indexes must
// be there, and each wire must be solved exactly once, before it is used. gnark
// solves in goroutines of its own, where a panic ends the process.
func checkSystem(ccs constraint.ConstraintSystem, id curve.ID, counts r1csCounts) (err error) {
	defer recovered(&err, "check the system")
	sys, err := systemOf(ccs)
	if err != nil {
		return err
	}
	if sys.curve != id || sys.Field().Cmp(id.ScalarModulus()) != 0 {
		return fmt.Errorf("%w: the scalar field is %s", ErrCurve, sys.ScalarField)
	}
	if sys.GkrInfo.Is() {
		return errors.New("circuits with GKR are not read")
	}
	for i, c := range sys.coeffs {
		if !groth16.Reduced(id, c) {
			return fmt.Errorf("coefficient %d is not reduced", i)
		}
	}
	fixed := gnark.NewCS(eccOf(id))
	for i := range fixed.GetNbCoefficients() {
		if i >= len(sys.coeffs) || fixed.GetCoefficient(i) != ccs.GetCoefficient(i) {
			return fmt.Errorf("coefficient %d is not what it always is", i)
		}
	}
	inputs := int64(len(sys.Public)) + int64(len(sys.Secret))
	// A hint announces its outputs in a few bytes whatever their number.
	if n := int64(sys.NbInternalVariables); len(sys.Public) < 1 || n < 0 || n > 4*counts.words+1<<16 {
		return fmt.Errorf("%d public, %d secret and %d internal wires", len(sys.Public), len(sys.Secret), n)
	}
	c := &checker{sys: sys, wires: uint32(inputs) + uint32(sys.NbInternalVariables)}
	if int64(c.wires) != inputs+int64(sys.NbInternalVariables) {
		return errors.New("too many wires")
	}
	if err := c.blueprints(); err != nil {
		return err
	}
	if err := c.debug(); err != nil {
		return err
	}
	if err := c.solve(uint32(inputs)); err != nil {
		return err
	}
	return c.committed()
}

type checker struct {
	sys    *system
	wires  uint32
	solved []uint32 // the level that solves each wire, from 1; inputs 0xffffffff
	level  uint32
	tables map[constraint.Blueprint]*table
}

// table is a lookup table. Its entries are checked once, as far as lookups have
// needed them: what is solved stays solved.
type table struct {
	entries, checked uint32
	rest             []uint32 // of the words, from the first unchecked entry on
}

const isInput = ^uint32(0)

func (c *checker) blueprints() error {
	c.tables = make(map[constraint.Blueprint]*table)
	for i, b := range c.sys.Blueprints {
		switch b := b.(type) {
		case *constraint.BlueprintGenericHint:
		case *constraint.BlueprintGenericR1C:
		case *constraint.BlueprintLookupHint[constraint.U64]:
			t := &table{rest: b.EntriesCalldata}
			for rest := t.rest; len(rest) > 0; t.entries++ {
				n := int64(rest[0])
				if 2*n > int64(len(rest)-1) {
					return fmt.Errorf("entry %d of lookup table %d is cut short", t.entries, i)
				}
				rest = rest[1+2*n:]
			}
			c.tables[b] = t
		default:
			return fmt.Errorf("blueprint %d is a %T", i, b)
		}
	}
	return nil
}

// debug checks what the solver looks up to word an error.
func (c *checker) debug() error {
	entry := func(l constraint.LogEntry) bool {
		for _, e := range l.ToResolve {
			for _, t := range e {
				if int(t.CID) >= len(c.sys.coeffs) || (!t.IsConstant() && t.VID >= c.wires) {
					return false
				}
			}
		}
		for _, s := range l.Stack {
			if s < 0 || s >= len(c.sys.SymbolTable.Locations) {
				return false
			}
		}
		return true
	}
	for _, l := range append(c.sys.Logs[:len(c.sys.Logs):len(c.sys.Logs)], c.sys.DebugInfo...) {
		if !entry(l) {
			return errors.New("a log entry or debug information names what is not there")
		}
	}
	for _, l := range c.sys.SymbolTable.Locations {
		if l.FunctionID < 0 || l.FunctionID >= len(c.sys.SymbolTable.Functions) {
			return errors.New("the symbol table names a function that is not there")
		}
	}
	for row, d := range c.sys.MDebug {
		if d < 0 || d >= len(c.sys.DebugInfo) {
			return fmt.Errorf("debug information of constraint %d is not there", row)
		}
	}
	return nil
}

// solve goes through the levels as the solver does.
func (c *checker) solve(inputs uint32) error {
	c.solved = make([]uint32, c.wires)
	for i := range inputs {
		c.solved[i] = isInput
	}
	// Instructions are numbered as their constraints are.
	row := uint32(0)
	for i, in := range c.sys.Instructions {
		if int64(in.BlueprintID) >= int64(len(c.sys.Blueprints)) || in.StartCallData >= uint64(len(c.sys.CallData)) {
			return fmt.Errorf("instruction %d names blueprint %d and word %d", i, in.BlueprintID, in.StartCallData)
		}
		if n := uint64(c.sys.CallData[in.StartCallData]); n < 1 || n > uint64(len(c.sys.CallData))-in.StartCallData {
			return fmt.Errorf("instruction %d is of %d words", i, n)
		}
		if _, ok := c.sys.Blueprints[in.BlueprintID].(constraint.BlueprintR1C); ok {
			if in.ConstraintOffset != row {
				return fmt.Errorf("instruction %d is constraint %d, it says %d", i, row, in.ConstraintOffset)
			}
			row++
		}
	}
	if int64(row) != int64(c.sys.NbConstraints) {
		return fmt.Errorf("%d constraints, %d are announced", row, c.sys.NbConstraints)
	}
	seen := make([]bool, len(c.sys.Instructions))
	for l, level := range c.sys.Levels {
		c.level = uint32(l + 1)
		for _, i := range level {
			if int64(i) >= int64(len(seen)) || seen[i] {
				return fmt.Errorf("level %d names instruction %d, which is not there or was before", l, i)
			}
			seen[i] = true
			if err := c.instruction(c.sys.Instructions[i]); err != nil {
				return fmt.Errorf("instruction %d: %w", i, err)
			}
		}
	}
	for w, at := range c.solved {
		if at == 0 {
			return fmt.Errorf("wire %d is solved by no instruction", w)
		}
	}
	return nil
}

var errShort = errors.New("its words are too few")

func (c *checker) instruction(in constraint.PackedInstruction) error {
	call := in.Unpack(c.sys.System).Calldata
	switch b := c.sys.Blueprints[in.BlueprintID].(type) {
	case *constraint.BlueprintGenericR1C:
		return c.r1c(call)
	case *constraint.BlueprintGenericHint:
		if len(call) < 3 {
			return errShort
		}
		rest, err := c.expressions(call[3:], call[2])
		if err != nil {
			return err
		}
		if len(rest) < 2 || rest[0] >= rest[1] || rest[1] > c.wires {
			return errors.New("its outputs are no wires")
		}
		for w := rest[0]; w < rest[1]; w++ {
			if err := c.output(w); err != nil {
				return err
			}
		}
	case *constraint.BlueprintLookupHint[constraint.U64]:
		if len(call) < 3 {
			return errShort
		}
		t := c.tables[b]
		if call[1] > t.entries {
			return fmt.Errorf("it looks at %d entries of %d", call[1], t.entries)
		}
		if call[1] > t.checked {
			var err error
			if t.rest, err = c.expressions(t.rest, call[1]-t.checked); err != nil {
				return err
			}
			t.checked = call[1]
		}
		if _, err := c.expressions(call[3:], call[2]); err != nil {
			return err
		}
		for i := range call[2] {
			if w := uint64(in.WireOffset) + uint64(i); w >= uint64(c.wires) {
				return errors.New("its outputs are no wires")
			}
			if err := c.output(in.WireOffset + i); err != nil {
				return err
			}
		}
	}
	return nil
}

// r1c checks L·R = O, which may leave one wire to solve.
func (c *checker) r1c(call []uint32) error {
	if len(call) < 4 || 4+2*(int64(call[1])+int64(call[2])+int64(call[3])) != int64(len(call)) {
		return errShort
	}
	open := false
	for i := 4; i < len(call); i += 2 {
		coeff, wire := call[i], call[i+1]
		if int64(coeff) >= int64(len(c.sys.coeffs)) || wire >= c.wires {
			return fmt.Errorf("it names coefficient %d and wire %d", coeff, wire)
		}
		switch c.solved[wire] {
		case 0:
			if open || coeff == constraint.CoeffIdZero {
				return fmt.Errorf("it cannot be solved for wire %d", wire)
			}
			open = true
			if err := c.output(wire); err != nil {
				return err
			}
		case c.level:
			return fmt.Errorf("it needs wire %d, which its own level solves", wire)
		}
	}
	return nil
}

// output marks a wire as solved by this level.
func (c *checker) output(wire uint32) error {
	if c.solved[wire] != 0 {
		return fmt.Errorf("wire %d is solved twice", wire)
	}
	c.solved[wire] = c.level
	return nil
}

// expressions checks n linear expressions (a count, then coefficient and wire of
// each term), all of whose wires must be solved, and returns what follows.
func (c *checker) expressions(words []uint32, n uint32) ([]uint32, error) {
	for range n {
		if len(words) < 1 || 2*int64(words[0]) > int64(len(words)-1) {
			return nil, errShort
		}
		terms := words[1 : 1+2*int(words[0])]
		words = words[1+len(terms):]
		for i := 0; i < len(terms); i += 2 {
			coeff, wire := terms[i], terms[i+1]
			if int64(coeff) >= int64(len(c.sys.coeffs)) || (wire != isInput && wire >= c.wires) {
				return nil, fmt.Errorf("it names coefficient %d and wire %d", coeff, wire)
			}
			if wire != isInput && (c.solved[wire] == 0 || c.solved[wire] == c.level) {
				return nil, fmt.Errorf("it needs wire %d, which is not solved yet", wire)
			}
		}
	}
	return words, nil
}

// committed checks the commitments.
func (c *checker) committed() error {
	info, _ := c.sys.CommitmentInfo.(constraint.Groth16Commitments) // checked by systemOf
	earlier := make(map[int]bool)
	for i, com := range info {
		if com.CommitmentIndex < len(c.sys.Public) || int64(com.CommitmentIndex) >= int64(c.wires) || com.NbPublicCommitted < 0 || com.NbPublicCommitted > len(com.PublicAndCommitmentCommitted) {
			return fmt.Errorf("commitment %d names what is not there", i)
		}
		prev := 0
		for j, w := range com.PublicAndCommitmentCommitted {
			public := j < com.NbPublicCommitted
			if w <= prev || (public && w >= len(c.sys.Public)) || (!public && !earlier[w]) {
				return fmt.Errorf("commitment %d covers wire %d", i, w)
			}
			prev = w
		}
		for _, w := range com.PrivateCommitted {
			if w < len(c.sys.Public) || int64(w) >= int64(c.wires) {
				return fmt.Errorf("commitment %d is to wire %d", i, w)
			}
		}
		earlier[com.CommitmentIndex] = true
	}
	return nil
}
