package gpu_test

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
)

func TestArgsAreLaidOutAsDriversTakeThem(t *testing.T) {
	defer alloc.Marked().CheckLeaks(t)
	a := gpu.NewArgs()
	defer a.Close()
	words := []uint32{9, 8, 7}
	a.Ptr(0x1122334455).U32(6).U64(1 << 40).Words(words).U32(5)
	p := must(a.Params())(t)
	at := unsafe.Slice((*unsafe.Pointer)(p), 5)
	if *(*uint64)(at[0]) != 0x1122334455 || *(*uint32)(at[1]) != 6 || *(*uint64)(at[2]) != 1<<40 || *(*uint32)(at[4]) != 5 {
		t.Fatal("values")
	}
	if [3]uint32(unsafe.Slice((*uint32)(at[3]), 3)) != [3]uint32{9, 8, 7} || uintptr(at[3])%8 != 0 || uintptr(at[2])%8 != 0 {
		t.Fatal("a struct")
	}
	if a.Len() != 5 || !bytes.Equal(a.Arg(3), unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 12)) || len(a.Arg(4)) != 4 {
		t.Fatal("Arg")
	}
}

func TestArgsLiveOffTheHeapAndAllocateNothing(t *testing.T) {
	stage := alloc.StageOf("gpu")
	before := alloc.Default().StageLive(stage)[alloc.Host]
	a := gpu.NewArgs()
	if n := alloc.Default().StageLive(stage)[alloc.Host] - before; n < 1024 {
		t.Fatalf("%d bytes are counted", n)
	}
	w := make([]uint32, 16)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := a.Reset().Ptr(1).U32(2).U64(3).Words(w).Params(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	a.Close()
	a.Close()
	if n := alloc.Default().StageLive(stage)[alloc.Host]; n != before {
		t.Fatal("not given back")
	}
	if _, err := a.Reset().U32(1).Params(); err == nil {
		t.Fatal("closed arguments can be used")
	}
}

func TestArgsThatDoNotFit(t *testing.T) {
	a := gpu.NewArgs()
	defer a.Close()
	for range 33 {
		a.U32(1)
	}
	if _, err := a.Params(); err == nil {
		t.Fatal("33 arguments")
	}
	if _, err := a.Reset().Words(make([]uint32, 256)).Params(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Words(nil).Params(); err != nil {
		t.Fatal("an argument of no bytes")
	}
	if _, err := a.U32(1).Params(); err == nil {
		t.Fatal("1028 bytes")
	}
	if _, err := a.Reset().U32(1).Params(); err != nil {
		t.Fatal(err)
	}
}
