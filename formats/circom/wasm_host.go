package circom

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// exceptionError is thrown through the machine when the module calls
// exceptionHandler; the machine turns it into the error of the call.
type exceptionError struct{ code uint32 }

func (e *exceptionError) Error() string { return fmt.Sprintf("exception %d", e.code) }

// Codes of exceptionHandler.
const (
	codeUnknownSignal = 1
	codeTooMany       = 2
	codeAlreadySet    = 3
	codeAssert        = 4
	codeMemory        = 5
	codeOutOfRange    = 6
)

var codes = map[uint32]string{
	codeUnknownSignal: "the circuit has no such input signal",
	codeTooMany:       "more values than the circuit's inputs take",
	codeAlreadySet:    "the signal was set before",
	codeAssert:        "an assertion or constraint of the circuit does not hold",
	codeMemory:        "the circuit ran out of memory",
	codeOutOfRange:    "more values than the signal has places",
}

// ErrAssert is what a *CircuitError is when the inputs do not satisfy an
// assertion or a constraint of the circuit.
var ErrAssert = errors.New(codes[codeAssert])

// CircuitError is an exception of a circuit's witness calculator.
type CircuitError struct {
	File     string   // the calculator
	Signal   string   // the input signal that was being set, if it is about one
	Code     uint32   // circom's number of the exception
	Messages []string // what the circuit printed: template and line of what failed, innermost first
}

// Error has the code's meaning and the circuit's messages.
func (e *CircuitError) Error() string {
	var b strings.Builder
	b.WriteString(e.File + ": ")
	if e.Signal != "" {
		fmt.Fprintf(&b, "input signal %q: ", e.Signal)
	}
	if text, ok := codes[e.Code]; ok {
		b.WriteString(text)
	} else {
		fmt.Fprintf(&b, "the circuit threw exception %d", e.Code)
	}
	for _, m := range e.Messages {
		b.WriteString("; " + m)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrAssert) work.
func (e *CircuitError) Is(target error) bool { return target == ErrAssert && e.Code == codeAssert }

// maxMessage bounds a text that a module prints, maxMessages how many of them
// are kept.
const (
	maxMessage  = 4096
	maxMessages = 64
)

// host provides what the module imports from "runtime": just the functions
// that it names, with the shape that it gives them, for versions differ.
func (c *Calculator) host(ctx context.Context) error {
	b := c.runtime.NewHostModuleBuilder("runtime")
	for _, f := range c.module.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != "runtime" {
			return c.fail(fmt.Errorf("not a witness calculator of circom: it imports %s.%s", module, name))
		}
		do, ok := imports[name]
		if !ok || len(f.ResultTypes()) > 0 || name == "exceptionHandler" && !hasShape(f, [2]int{1, 0}) {
			return c.fail(fmt.Errorf("not a witness calculator of circom: it imports runtime.%s", name))
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			if in, ok := ctx.Value(instanceKey{}).(*instance); ok {
				do(ctx, in, m, stack)
			}
		}), f.ParamTypes(), nil).Export(name)
	}
	if len(c.module.ImportedMemories()) > 0 {
		return c.fail(errors.New("not a witness calculator of circom 2: it imports a memory"))
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return c.fail(fmt.Errorf("provide the host's functions: %w", err))
	}
	return nil
}

var imports = map[string]func(ctx context.Context, in *instance, m api.Module, stack []uint64){
	"exceptionHandler": func(_ context.Context, in *instance, _ api.Module, stack []uint64) {
		in.failure = &exceptionError{code: api.DecodeU32(stack[0])}
		panic(in.failure) // caught by the machine: it is how a host function stops a module
	},
	"printErrorMessage": func(ctx context.Context, in *instance, m api.Module, _ []uint64) {
		if text := message(ctx, m); len(in.messages) < maxMessages {
			in.messages = append(in.messages, strings.TrimSpace(text))
		}
	},
	// log() writes its arguments one by one and a newline at the end.
	"writeBufferMessage": func(ctx context.Context, in *instance, m api.Module, _ []uint64) {
		in.log(message(ctx, m))
	},
	"showSharedRWMemory": func(ctx context.Context, in *instance, m api.Module, _ []uint64) {
		v := new(big.Int)
		if read := m.ExportedFunction("readSharedRWMemory"); read != nil {
			var b [32]byte
			for i := range 8 {
				r, err := read.Call(ctx, uint64(i))
				if err != nil || len(r) != 1 {
					return
				}
				binary.BigEndian.PutUint32(b[4*(7-i):], api.DecodeU32(r[0]))
			}
			v.SetBytes(b[:])
		}
		in.log(v.String())
		if m.ExportedFunction("getMessageChar") == nil {
			in.log("\n") // circom before 2.0.7 has no texts and logs one value a line
		}
	},
	// Of circom before 2.1: nothing of it is of interest.
	"log":        func(context.Context, *instance, api.Module, []uint64) {},
	"error":      func(context.Context, *instance, api.Module, []uint64) {},
	"printDebug": func(context.Context, *instance, api.Module, []uint64) {},
}

// log adds a piece of a line, or ends it.
func (in *instance) log(text string) {
	if in.c.options.Log == nil {
		return
	}
	if text == "\n" {
		in.c.options.Log(in.line.String())
		in.line.Reset()
		return
	}
	if in.line.Len() > maxMessage {
		return
	}
	if in.line.Len() > 0 {
		in.line.WriteByte(' ')
	}
	in.line.WriteString(text)
}

// message reads the text that the module has ready, byte by byte.
func message(ctx context.Context, m api.Module) string {
	next := m.ExportedFunction("getMessageChar")
	if next == nil {
		return ""
	}
	var b []byte
	for len(b) < maxMessage {
		r, err := next.Call(ctx)
		if err != nil || len(r) != 1 || r[0] == 0 {
			break
		}
		b = append(b, byte(r[0]))
	}
	return string(b)
}
