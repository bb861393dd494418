package main

import (
	"context"
	"fmt"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
)

// inspectCmd says what is in a file.
type inspectCmd struct {
	Files   []string `arg:"" name:"file" help:"r1cs, wtns, zkey, slk, wasm, snarkjs's JSON files, gnark's files."`
	Circuit string   `placeholder:"FILE" help:"gnark's constraint system, for a gnark proving key that makes commitments."`
	Curve   string   `placeholder:"NAME" help:"bn254 or bls12-381, for a gnark witness, which does not say."`
}

// Run looks at each file. The first that cannot be read decides the exit code.
func (c *inspectCmd) Run(a *app) error {
	var all []*facts
	var first error
	shown := 0
	for _, path := range c.Files {
		f, err := c.inspect(a.scope("inspect"), path)
		if err != nil {
			err = inputError(err)
			if len(c.Files) == 1 {
				return err
			}
			a.messagef("%s", errorText(err))
			if first == nil {
				first = &toldError{err}
			}
			continue
		}
		all = append(all, f)
		if a.flags.JSON {
			continue
		}
		if err := a.printFacts(path, f, shown); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		shown++
	}
	if a.flags.JSON {
		var v any = all
		if len(c.Files) == 1 {
			v = all[0]
		}
		if err := a.result(v, nil); err != nil {
			return err
		}
	}
	return first
}

func (a *app) printFacts(path string, f *facts, before int) error {
	if before > 0 {
		if _, err := fmt.Fprintln(a.stdout); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(a.stdout, "%s: %s\n", path, f.list[1].text); err != nil {
		return err
	}
	return f.write(a.stdout)
}

// inspect finds the facts of one file.
func (c *inspectCmd) inspect(ctx context.Context, path string) (*facts, error) {
	res, err := sniff.File(path)
	if err != nil {
		return nil, err
	}
	f := &facts{}
	f.add("file", "", path)
	f.add("kind", "", string(res.Kind))
	f.size("bytes", "size", res.Size)
	switch res.Kind {
	case sniff.R1CS:
		err = inspectR1CS(ctx, f, path)
	case sniff.Wtns:
		err = inspectWtns(ctx, f, path)
	case sniff.Zkey:
		err = inspectZkey(ctx, f, path)
	case sniff.Wasm:
		err = inspectWasm(ctx, f, path)
	case sniff.VKeyJSON, sniff.GnarkVK:
		err = inspectVK(ctx, f, path)
	case sniff.ProofJSON, sniff.GnarkProof:
		err = inspectProof(ctx, f, path)
	case sniff.PublicJSON:
		err = inspectPublic(f, path)
	case sniff.InputJSON:
		err = inspectInput(f, path)
	case sniff.Native:
		err = inspectNative(ctx, f, path)
	case sniff.GnarkPK:
		err = c.inspectGnarkPK(ctx, f, path, res)
	case sniff.GnarkR1CS:
		err = inspectGnarkR1CS(ctx, f, path)
	case sniff.GnarkWitness:
		err = c.inspectGnarkWitness(ctx, f, path)
	default:
		return nil, inputErrorf("%s: of no kind that is known here, or damaged (files of gnark have no mark by which a cut one could be told)", path)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// sections is a table of named sizes as facts.
type sections []section

type section struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

func (s sections) add(f *facts) {
	f.add("sections", "", s)
	for _, x := range s {
		f.list = append(f.list, fact{label: "· " + x.Name, text: sizeText(x.Bytes), hidden: true})
	}
}
