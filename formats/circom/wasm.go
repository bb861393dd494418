package circom

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/formats/internal/arith"
)

const (
	pageBytes   = 1 << 16
	maxWasmFile = 1 << 30
)

// CalculatorOptions says how a witness calculator runs.
type CalculatorOptions struct {
	// MemoryLimit bounds the memory of one calculation in bytes; 0 means the
	// 4 GiB of WebAssembly itself.
	MemoryLimit int64
	// Log, if set, is given the lines that the circuit prints by log(). It may
	// be called from several goroutines at once.
	Log func(line string)
	// Interpret runs the module in wazero's interpreter even where it has a
	// compiler (amd64 and arm64).
	Interpret bool
}

// Calculator is the witness calculator that circom 2 makes of a circuit, a
// WebAssembly module compiled once. It is safe for concurrent use: every
// calculation runs in an instance of its own.
type Calculator struct {
	name    string
	options CalculatorOptions
	runtime wazero.Runtime
	module  wazero.CompiledModule
	field   *arith.Field
	id      curve.ID
	wires   int
	inputs  int
	memory  uint64 // bytes that an instance begins with
}

// OpenCalculator reads and compiles a witness calculator.
func OpenCalculator(ctx context.Context, path string, o CalculatorOptions) (*Calculator, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, openError(err)
	}
	if info.Size() > maxWasmFile {
		return nil, &FormatError{File: path, Offset: -1, Err: fmt.Errorf("%d bytes are too many for a witness calculator", info.Size())}
	}
	code, err := os.ReadFile(path)
	if err != nil {
		return nil, openError(err)
	}
	return NewCalculator(ctx, path, code, o)
}

// wasmFeatures is what circom and the optimizers that its modules go through use
// of WebAssembly. Tables that grow, which nothing bounds, are not among them.
const wasmFeatures = api.CoreFeaturesV1 | api.CoreFeatureSignExtensionOps | api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureBulkMemoryOperations

// NewCalculator compiles a witness calculator. The name is for messages.
func NewCalculator(ctx context.Context, name string, code []byte, o CalculatorOptions) (*Calculator, error) {
	config := wazero.NewRuntimeConfig()
	if o.Interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCloseOnContextDone(true).WithCoreFeatures(wasmFeatures)
	if pages := o.MemoryLimit / pageBytes; o.MemoryLimit > 0 && pages < 1<<16 {
		config = config.WithMemoryLimitPages(uint32(max(pages, 1)))
	}
	c := &Calculator{name: name, options: o, runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if err := c.guard(func() error { return c.open(ctx, code) }); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// guard runs f, and makes an error of a panic: the code is a stranger's, and
// a fault in the machine that runs it must not end the process.
func (c *Calculator) guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = c.fail(fmt.Errorf("the WebAssembly machine failed: %v", r))
		}
	}()
	return f()
}

func (c *Calculator) fail(err error) error {
	return &FormatError{File: c.name, Offset: -1, Err: err}
}

// required are the functions that every circom 2 has, with their parameters
// and results, all i32. Those that are not here came or went with versions.
var required = map[string][2]int{
	"getVersion": {0, 1}, "init": {1, 0}, "setInputSignal": {3, 0}, "getFieldNumLen32": {0, 1},
	"getRawPrime": {0, 0}, "getWitnessSize": {0, 1}, "getInputSize": {0, 1}, "getWitness": {1, 0},
	"readSharedRWMemory": {1, 1}, "writeSharedRWMemory": {2, 0},
}

// optional are those that some versions lack.
var optional = map[string][2]int{
	"getInputSignalSize": {2, 1}, "getSharedRWMemoryStart": {0, 1}, "getMessageChar": {0, 1},
}

func (c *Calculator) open(ctx context.Context, code []byte) (err error) {
	if code, err = checkModule(code); err != nil {
		return c.fail(fmt.Errorf("compile: %w", err))
	}
	if c.module, err = c.runtime.CompileModule(ctx, code); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.fail(fmt.Errorf("compile: %w", err))
	}
	exports := c.module.ExportedFunctions()
	if exports["getVersion"] == nil && exports["getNVars"] != nil {
		return c.fail(errors.New("a witness calculator of circom 1; circom 2 is needed"))
	}
	for name, shape := range required {
		f, ok := exports[name]
		if !ok {
			return c.fail(fmt.Errorf("not a witness calculator of circom: it has no function %s", name))
		}
		if !hasShape(f, shape) {
			return c.fail(fmt.Errorf("function %s has other parameters than circom's", name))
		}
	}
	for name, shape := range optional {
		if f, ok := exports[name]; ok && !hasShape(f, shape) {
			return c.fail(fmt.Errorf("function %s has other parameters than circom's", name))
		}
	}
	memories := c.module.ExportedMemories()
	m, ok := memories["memory"]
	if !ok || len(memories) != 1 {
		return c.fail(errors.New("not a witness calculator of circom: it exports no memory, or several"))
	}
	c.memory = uint64(m.Min()) * pageBytes
	if err := c.host(ctx); err != nil {
		return err
	}
	return c.measure(ctx)
}

func hasShape(f api.FunctionDefinition, shape [2]int) bool {
	if len(f.ParamTypes()) != shape[0] || len(f.ResultTypes()) != shape[1] {
		return false
	}
	for _, t := range append(f.ParamTypes(), f.ResultTypes()...) {
		if t != api.ValueTypeI32 {
			return false
		}
	}
	return true
}

// measure asks a first instance for the curve and the sizes.
func (c *Calculator) measure(ctx context.Context) error {
	in, err := c.instantiate(ctx)
	if err != nil {
		return err
	}
	defer in.close()
	version, err := in.call("getVersion")
	if err != nil {
		return err
	}
	if version != 2 {
		return c.fail(fmt.Errorf("a witness calculator of circom %d; circom 2 is needed", version))
	}
	words, err := in.call("getFieldNumLen32")
	if err != nil {
		return err
	}
	if words != curve.ScalarBytes/4 {
		return c.fail(fmt.Errorf("a field of %d words of 32 bits, not %d", words, curve.ScalarBytes/4))
	}
	if _, err := in.call("getRawPrime"); err != nil {
		return err
	}
	prime, err := in.shared()
	if err != nil {
		return err
	}
	for _, id := range curve.All() {
		if string(prime) == string(scalarModulus(id)) {
			c.id = id
		}
	}
	if c.field, err = arith.FieldOf(c.id); err != nil {
		return c.fail(errors.New("the prime is that of no known curve"))
	}
	wires, err := in.call("getWitnessSize")
	if err != nil {
		return err
	}
	inputs, err := in.call("getInputSize")
	if err != nil {
		return err
	}
	// A wire takes 4 bytes in the module's table of the witness, an input value
	// at least as much: a module cannot announce more than it has memory for.
	if wires == 0 || uint64(wires) > c.memory/4 || uint64(inputs) > c.memory/4 {
		return c.fail(fmt.Errorf("%d wires and %d input values in %d bytes of memory", wires, inputs, c.memory))
	}
	c.wires, c.inputs = int(wires), int(inputs)
	return nil
}

// Curve is the curve whose scalar field the circuit is over.
func (c *Calculator) Curve() curve.ID { return c.id }

// Len is the number of wires of a witness.
func (c *Calculator) Len() int { return c.wires }

// NbInputs is how many input values the circuit takes, public and private.
func (c *Calculator) NbInputs() int { return c.inputs }

// Scratch is the memory that one calculation draws from the scope of its
// context besides the witness.
func (c *Calculator) Scratch() alloc.Amount { return alloc.HostBytes(int64(c.memory)) }

// Close frees the compiled module. No calculation may be running.
func (c *Calculator) Close() error { return c.runtime.Close(context.Background()) }
