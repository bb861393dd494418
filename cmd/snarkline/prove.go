package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/inputs"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/outfile"
	"github.com/snarkline/snarkline/cmd/snarkline/internal/sniff"
	"github.com/snarkline/snarkline/pipeline"
	"github.com/snarkline/snarkline/stages"
)

// proveCmd makes proofs.
type proveCmd struct {
	keyFlags    `embed:""`
	recordFlags `embed:""`
	liveFlags   `embed:""`

	Witness []string `sep:"none" placeholder:"FILE" help:"Witness (.wtns, or a gnark witness). Several files, a folder of them, or - for a list of paths on standard input make a batch."`
	Wasm    string   `placeholder:"FILE" help:"circom's witness calculator; takes --input."`
	Input   []string `sep:"none" placeholder:"FILE" help:"Input of the calculator (.json); a batch as with --witness."`
	Files   []string `arg:"" optional:"" name:"file" help:"More witnesses, or inputs with --wasm."`

	Proof  string `placeholder:"FILE" help:"Where the proof goes (default: proof.json). For a batch a folder (default: here), or a pattern with {name} or {n}."`
	Public string `placeholder:"FILE" help:"Where the public inputs go (default: public.json); a batch as with --proof."`
	Format string `enum:"auto,snarkjs,gnark" default:"auto" placeholder:"auto|snarkjs|gnark" help:"Format of proof and public inputs: auto is gnark's for a key or a circuit of gnark's, else snarkjs's."`

	Pipeline  string `placeholder:"FILE" help:"Prove through the pipeline that a TOML file describes; export pipeline prints the standard one to start from."`
	Ordered   bool   `help:"Give the proofs of a batch in the order of the inputs."`
	KeepGoing bool   `help:"Go on with the rest of a batch when an item fails."`
	NoVerify  bool   `name:"no-verify" help:"Hand proofs over without having verified them."`
}

// Help is the longer text of `snarkline prove --help`.
func (*proveCmd) Help() string {
	return `One proof:

  snarkline prove --key circuit.zkey --witness w.wtns --proof proof.json --public public.json
  snarkline prove --key circuit.zkey --wasm circuit.wasm --input input.json

A batch, of files, of a folder, or of paths that another program writes:

  snarkline prove --key circuit.zkey --witness w1.wtns w2.wtns --budget 4GiB
  snarkline prove --key circuit.zkey --witness witnesses/ --proof proofs/ --public proofs/
  ls *.wtns | snarkline prove --key circuit.zkey --witness -

Standard output gets the path of each proof as it is made, or, with --json, one
document at the end. A table of the stages with their memory goes to standard
error.`
}

// proveItem is what became of one input, for --json.
type proveItem struct {
	Input  string `json:"input"`
	Proof  string `json:"proof,omitempty"`
	Public string `json:"public,omitempty"`
	OK     bool   `json:"ok"`
	Code   int    `json:"code"`
	Error  string `json:"error,omitempty"`

	On       string   `json:"device,omitempty"`      // the processor of the stages
	B2On     string   `json:"b_g2_msm_on,omitempty"` // that of b_g2_msm
	Staged   string   `json:"staged,omitempty"`      // where a, b and c were put
	Attempts int      `json:"attempts,omitempty"`
	Again    []string `json:"again,omitempty"` // why it was made again, each time

	ended bool
}

// proveResult is the result of the command for --json.
type proveResult struct {
	OK       bool         `json:"ok"`
	Code     int          `json:"code"`
	Error    string       `json:"error,omitempty"`
	Proofs   int          `json:"proofs"`
	Failed   int          `json:"failed"`
	Verified bool         `json:"verified"`
	Seconds  float64      `json:"seconds"`
	Peak     int64        `json:"peak_bytes"`
	Items    []*proveItem `json:"items"`

	Processors *processorsReport `json:"processors"`
}

// proving is one invocation at work.
type proving struct {
	*proveCmd
	a       *app
	m       *material
	sources inputs.Args
	exts    []string
	proofs  *inputs.Namer
	publics *inputs.Namer
	claims  *inputs.Claims // files of this invocation, each for one thing
	single  []file         // the results of what is no batch
	gnark   bool           // gnark's formats go out

	mu    sync.Mutex
	items []*proveItem
	first error // of the failed item with the lowest place in the batch
	place int   // that place
	lost  error // why the list of inputs ended early
}

// item is the one that a job's key names.
func (p *proving) item(key pipeline.Key) *proveItem {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key.Part < 1 || key.Part > len(p.items) {
		return nil
	}
	return p.items[key.Part-1]
}

// name is a job's input.
func (p *proving) name(key pipeline.Key) string {
	if item := p.item(key); item != nil {
		return item.Input
	}
	return fmt.Sprint(key)
}

// Run makes the proofs.
func (c *proveCmd) Run(a *app) error {
	p := &proving{proveCmd: c, a: a}
	if err := p.arguments(); err != nil {
		return err
	}
	settings, err := a.flags.settings(pipeline.Settings{}, c.Pipeline != "")
	if err != nil {
		return err
	}
	description, err := c.description()
	if err != nil {
		return err
	}
	total, err := p.sources.Count(p.exts...)
	if err != nil {
		return inputError(err)
	}
	watch, err := c.watch(a, p.name, !slices.Contains(p.sources, "-"))
	if err != nil {
		return err
	}
	defer watch.close()
	procs, err := a.openProcessors()
	if err != nil {
		return err
	}
	defer procs.close()
	if p.m, err = a.openKey(&c.keyFlags); err != nil {
		return err
	}
	defer p.m.close()
	if c.Wasm != "" {
		if err := p.m.calculator(a.scope("witness"), c.Wasm); err != nil {
			return inputError(err)
		}
	}
	if p.gnark, err = p.format(); err != nil {
		return err
	}
	prover, err := p.m.prover(c.NoVerify)
	if err != nil {
		return err
	}
	if err := procs.take(prover, total); err != nil {
		return err
	}
	procs.announce()
	if c.NoVerify && len(procs.cards) > 0 {
		a.notef("--no-verify: a proof that a card gets wrong is not noticed")
	}
	if c.Pipeline == "" { // a pipeline says it itself
		settings = procs.suited(pipeline.Settings{}).Merge(settings)
	}
	out, err := a.prove(&batch{
		command: "prove", trace: c.Trace, watch: watch,
		prover: prover, procs: procs, settings: procs.budgets(settings), name: p.name, jobs: p.jobs, total: total,
		description: description, pipeline: c.Pipeline, ordered: c.Ordered, keepGoing: c.KeepGoing, done: p.done, failed: p.failed,
	})
	return p.report(out, err)
}

// description is the text of --pipeline, tried out by building its graph.
func (c *proveCmd) description() (string, error) {
	if c.Pipeline == "" {
		return "", nil
	}
	text, err := os.ReadFile(c.Pipeline)
	if err != nil {
		return "", usagef("--pipeline: %w", err)
	}
	return string(text), nil
}

// arguments sorts out which files are witnesses and where the results go.
func (p *proving) arguments() error {
	switch {
	case p.Wasm != "" && len(p.Witness) > 0:
		return usagef("--wasm computes witnesses from --input; it does not go with --witness")
	case p.Wasm == "" && len(p.Input) > 0:
		return usagef("--input needs --wasm, the circuit's witness calculator")
	case p.Wasm != "":
		p.sources, p.exts = append(append(inputs.Args{}, p.Input...), p.Files...), []string{".json"}
	default:
		p.sources, p.exts = append(append(inputs.Args{}, p.Witness...), p.Files...), []string{".wtns", ".wit", ".bin"}
	}
	if len(p.sources) == 0 {
		return usagef("nothing to prove: give --witness, or --wasm and --input")
	}
	batch := p.sources.IsBatch()
	ending := ".json"
	if p.expectGnark() {
		ending = "" // the files are binary
	}
	var err error
	if p.proofs, err = inputs.NewNamer("--proof", p.Proof, ".proof"+ending, "proof.json", batch); err != nil {
		return usagef("%w", err)
	}
	if p.publics, err = inputs.NewNamer("--public", p.Public, ".public"+ending, "public.json", batch); err != nil {
		return usagef("%w", err)
	}
	if err := p.claim(batch); err != nil {
		return err
	}
	if batch {
		for _, f := range []file{{"--proof", p.proofs.Dir()}, {"--public", p.publics.Dir()}} {
			if f.path == "" {
				continue
			}
			if err := os.MkdirAll(f.path, 0o777); err != nil {
				return fmt.Errorf("%s: make the folder for the results: %w", f.flag, err)
			}
			if err := outfile.CheckFolder(f.path); err != nil {
				return fmt.Errorf("%s: %w", f.flag, err)
			}
		}
	}
	return p.a.writable(append(p.single, p.traceFile())...)
}

// claim notes which files the invocation is known to read and write, and
// refuses names that would cost one of them.
func (p *proving) claim(batch bool) error {
	var err error
	if p.claims, err = p.a.claims(
		file{"--key", p.Key}, file{"--vk", p.VK}, file{"--circuit", p.Circuit}, file{"--wasm", p.Wasm}, file{"--pipeline", p.Pipeline}); err != nil {
		return err
	}
	for _, arg := range p.sources {
		if arg == "-" {
			continue
		}
		for in, err := range (inputs.Args{arg}).All(p.a.ctx, nil, p.exts...) {
			if err != nil {
				break // whoever opens them says it
			}
			if err := p.claims.Read(in.Path, p.source()); err != nil {
				return usagef("%w", err)
			}
		}
	}
	if err := claimWrites(p.claims, p.traceFile()); err != nil {
		return err
	}
	if batch {
		// Items that clash with each other fail one by one.
		if err := p.proofs.Clash(p.publics); err != nil {
			return usagef("%w", err)
		}
		return nil
	}
	try := p.claims.Clone()
	only := inputs.Item{Path: p.sources[0], Name: inputs.Stem(p.sources[0]), Index: 1}
	proof, err := p.proofs.Path(only, try)
	if err != nil {
		return usagef("%w", err)
	}
	public, err := p.publics.Path(only, try)
	if err != nil {
		return usagef("%w", err)
	}
	p.single = []file{{"--proof", proof}, {"--public", public}}
	return nil
}

// source is the flag that the inputs come by.
func (p *proving) source() string {
	if p.Wasm != "" {
		return "--input"
	}
	return "--witness"
}

// names gives an item's results their names.
func (p *proving) names(in inputs.Item, item *proveItem) error {
	err := p.claims.Read(in.Path, p.source())
	if err == nil {
		item.Proof, err = p.proofs.Path(in, p.claims)
	}
	if err == nil {
		item.Public, err = p.publics.Path(in, p.claims)
	}
	if err != nil {
		item.Proof, item.Public = "", ""
		return usagef("%w", err)
	}
	return nil
}

// expectGnark foretells format before the key is read, from the kinds of the
// files: a circuit with commitments comes with a --circuit of gnark's.
func (p *proving) expectGnark() bool {
	if p.Format != "auto" {
		return p.Format == "gnark"
	}
	for _, path := range []string{p.Key, p.Circuit} {
		if path == "" {
			continue
		}
		if res, err := sniff.File(path); err == nil && res.Kind.Gnark() { // whoever opens it tells an error
			return true
		}
	}
	return false
}

// format reports whether gnark's formats go out. A .slk does not say whose the
// circuit was, but --circuit does, and snarkjs knows no commitments.
func (p *proving) format() (bool, error) {
	commits := len(p.m.key.Commitments) > 0
	switch p.Format {
	case "gnark":
		return true, nil
	case "auto":
		return p.m.kind.Gnark() || p.m.ofGnark || commits, nil
	}
	if commits {
		return false, usagef("--format %s: snarkjs's format has no place for the commitments of this circuit; use --format gnark", p.Format)
	}
	return false, nil
}

// jobs yields a job for each input, as the pipeline asks for them.
func (p *proving) jobs(yield func(stages.Job) bool) {
	none := true
	defer func() {
		if none && p.lost == nil && p.a.ctx.Err() == nil {
			p.lost = inputErrorf("%s: the list on standard input names no file", p.source())
		}
	}()
	for in, err := range p.sources.All(p.a.ctx, p.a.stdin, p.exts...) {
		none = false
		if err != nil {
			p.lost = inputError(err)
			return
		}
		item := &proveItem{Input: in.Path}
		job := deferred{item: in, fail: p.names(in, item)}
		p.mu.Lock()
		p.items = append(p.items, item)
		p.mu.Unlock()
		if !yield(stages.Job{Key: pipeline.Key{Job: in.Path, Part: in.Index}, Input: &job}) {
			return
		}
	}
}

// done writes a proof and its public inputs.
func (p *proving) done(r *stages.Result) error {
	item := p.item(r.Key)
	if item == nil {
		return fmt.Errorf("a proof of the unknown item %v", r.Key)
	}
	var proof, public bytes.Buffer
	if err := writeProof(&proof, r.Proof, p.gnark); err != nil {
		return err
	}
	if err := writePublic(&public, p.m.key.Curve, r.Public, p.gnark); err != nil {
		return err
	}
	if err := outfile.All(outfile.Content{Path: item.Proof, Data: proof.Bytes()}, outfile.Content{Path: item.Public, Data: public.Bytes()}); err != nil {
		return err
	}
	item.OK, item.ended = true, true
	item.On, item.B2On, item.Staged = r.On, r.B2On, r.Staged
	item.tell(r.Attempts, r.Again)
	if !p.a.flags.JSON && !outfile.IsStream(item.Proof) { // whose reader wants the proof alone
		if _, err := fmt.Fprintln(p.a.stdout, item.Proof); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	return nil
}

// failed records that an input gave no proof, and says so.
func (p *proving) failed(key pipeline.Key, err error) {
	item := p.item(key)
	if item == nil || item.ended {
		return // the run's own error says it
	}
	item.tell(attempts(err))
	err = p.m.explain(lastAttempt(err))
	item.ended, item.Code, item.Error = true, exitCode(err), advised(itemText(err, item.Input), err)
	if p.first == nil || key.Part < p.place {
		p.first, p.place = err, key.Part // whichever failed first in time
	}
	p.a.messagef("%s: %s", item.Input, item.Error)
	if p.a.flags.Debug {
		p.a.debugError(err)
	}
}

// tell notes how often the item was made, and why it was made again.
func (i *proveItem) tell(attempts int, again []error) {
	i.Attempts = attempts
	for _, err := range again {
		i.Again = append(i.Again, attemptText(err))
	}
}

// itemText is an item's error without the item's name, which stands before it.
func itemText(err error, input string) string {
	switch e := err.(type) { //nolint:errorlint // what wraps these says more
	case *pipeline.AdmitError:
		return fmt.Sprintf("needs %v, which never fits in the budget of %v (--budget)", e.Need, e.Limit)
	case *pipeline.StageError:
		text := unnamed(errorText(e.Err), input)
		if strings.HasPrefix(text, e.Stage+": ") {
			return text
		}
		return e.Stage + ": " + text
	}
	return unnamed(errorText(err), input)
}

// unnamed is an error's text without the file's name at its start.
func unnamed(text, input string) string {
	for _, name := range []string{input, filepath.Base(input)} {
		if rest, ok := strings.CutPrefix(text, name+": "); ok {
			return rest
		}
		if rest, ok := strings.CutPrefix(text, "open "+name+": "); ok {
			return rest
		}
	}
	return text
}

// report prints the outcome and gives the error that decides the exit code.
func (p *proving) report(out *outcome, err error) error {
	switch {
	case err != nil && p.a.ctx.Err() != nil:
		err = context.Cause(p.a.ctx)
	case p.first != nil:
		err = &toldError{p.first}
	case err == nil:
		err = p.lost
	}
	res := proveResult{OK: err == nil, Code: exitCode(err), Seconds: out.seconds, Items: p.items}
	if err != nil {
		res.Error = errorText(err)
	}
	for _, item := range p.items {
		switch {
		case item.OK:
			res.Proofs++
			continue
		case !item.ended:
			item.Code, item.Error = codeInterrupted, "not proved: the batch had ended"
		}
		item.Proof, item.Public = "", ""
		res.Failed++
	}
	res.Verified = res.Proofs > 0 && !p.NoVerify
	res.Peak, res.Processors = out.peak(), out.procs
	if res.Proofs > 0 || p.a.flags.Debug {
		if e := p.a.showTable(out); e != nil {
			return e
		}
	}
	if e := p.a.writeReport("prove", out, p.m.describe(), res); e != nil {
		return e
	}
	if p.sources.IsBatch() {
		p.a.notef("%d proved, %d not, in %.1f s", res.Proofs, res.Failed, out.seconds)
	}
	if p.a.flags.JSON {
		if e := p.a.result(res, nil); e != nil {
			return e
		}
	}
	return err
}
