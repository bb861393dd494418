package circom

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/curve"
)

// instance is a module at work for one calculation, by one goroutine.
type instance struct {
	c      *Calculator
	ctx    context.Context
	module api.Module
	memory *linearMemory
	stack  [3]uint64
	words  [curve.ScalarBytes]byte // shared's, where the module does not say where they lie
	funcs  map[string]api.Function
	start  int64 // of the shared words in memory; −1 if the module does not say

	failure  *exceptionError
	messages []string        // of printErrorMessage
	line     strings.Builder // of log()
}

type instanceKey struct{}

// instantiate makes an instance whose memory comes from ctx's scope.
func (c *Calculator) instantiate(ctx context.Context) (*instance, error) {
	memory, err := newLinearMemory(alloc.ScopeOf(ctx), c.memory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	in := &instance{c: c, memory: memory, funcs: map[string]api.Function{}, start: -1}
	in.ctx = context.WithValue(ctx, instanceKey{}, in)
	allocator := experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return memory })
	in.module, err = c.runtime.InstantiateModule(experimental.WithMemoryAllocator(in.ctx, allocator), c.module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		memory.Free()
		return nil, in.explain(fmt.Errorf("instantiate: %w", err))
	}
	if in.function("getSharedRWMemoryStart") != nil {
		at, err := in.call("getSharedRWMemoryStart")
		if err != nil {
			in.close()
			return nil, err
		}
		if int64(at)+curve.ScalarBytes <= int64(in.module.Memory().Size()) {
			in.start = int64(at)
		}
	}
	return in, nil
}

// close ends the instance and wipes and frees its memory.
func (in *instance) close() {
	clear(in.words[:])
	clear(in.stack[:])
	_ = in.module.Close(context.WithoutCancel(in.ctx)) // nothing but memory to lose
	in.memory.Free()
}

// function is an export, or nil.
func (in *instance) function(name string) api.Function {
	f, ok := in.funcs[name]
	if !ok {
		f = in.module.ExportedFunction(name)
		in.funcs[name] = f
	}
	return f
}

// call calls an export with 32-bit arguments; its result is 0 if it has none.
func (in *instance) call(name string, args ...uint32) (uint32, error) {
	return in.invoke(in.function(name), args...)
}

func (in *instance) invoke(f api.Function, args ...uint32) (uint32, error) {
	in.stack[0] = 0
	for i, a := range args {
		in.stack[i] = api.EncodeU32(a)
	}
	if err := f.CallWithStack(in.ctx, in.stack[:]); err != nil {
		return 0, in.explain(err)
	}
	return api.DecodeU32(in.stack[0]), nil
}

// explain says why the module stopped: the context, an exception of the
// circuit, want of memory, or a fault of the module.
func (in *instance) explain(err error) error {
	switch {
	case in.ctx.Err() != nil:
		return in.ctx.Err()
	case in.failure != nil:
		return &CircuitError{File: in.c.name, Code: in.failure.code, Messages: in.messages}
	case in.memory.err != nil:
		return fmt.Errorf("%s: %w", in.c.name, in.memory.err)
	}
	// The stack trace that wazero adds is of no use to anybody here.
	text, _, _ := strings.Cut(err.Error(), "\nwasm stack trace:")
	return in.c.fail(errors.New(text))
}

// shared is the words that the module shares with its host, in place where the
// module says where they lie. They are good until the next call.
func (in *instance) shared() ([]byte, error) {
	if in.start >= 0 {
		if b, ok := in.module.Memory().Read(uint32(in.start), curve.ScalarBytes); ok {
			return b, nil
		}
	}
	b := in.words[:]
	for i := range curve.ScalarBytes / 4 {
		v, err := in.call("readSharedRWMemory", uint32(i))
		if err != nil {
			return nil, err
		}
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	return b, nil
}

// share sets those words.
func (in *instance) share(b []byte) error {
	if in.start >= 0 && in.module.Memory().Write(uint32(in.start), b) {
		return nil
	}
	for i := range curve.ScalarBytes / 4 {
		if _, err := in.call("writeSharedRWMemory", uint32(i), binary.LittleEndian.Uint32(b[4*i:])); err != nil {
			return err
		}
	}
	return nil
}
