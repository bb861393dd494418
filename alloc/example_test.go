package alloc_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/snarkline/snarkline/alloc"
)

// A buffer is made in a scope, shared by references, and gone with the last.
func Example() {
	sc := alloc.NewScope(alloc.StageOf("example"), alloc.Host, nil)
	v, err := alloc.Make[uint64](sc, 1<<16, alloc.Evaluation, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	live := func() int64 { return alloc.Default().StageLive(sc.Stage())[alloc.Host] }
	v.Retain() // for another reader
	v.Release()
	fmt.Println(live(), v)
	v.Release()
	fmt.Println(live())
	// Output:
	// 524288 512 KiB of host memory, evaluation of stage example, 1 references
	// 0
}

// An item of work reserves what it will need, and gives back what it needs no
// longer, so that the next can begin.
func ExampleBudget() {
	budget := alloc.NewBudget(alloc.HostBytes(100 * alloc.MiB))
	r, err := budget.Reserve(context.Background(), alloc.HostBytes(80*alloc.MiB))
	if err != nil {
		fmt.Println(err)
		return
	}
	sc := alloc.NewScope(alloc.StageOf("ntt"), alloc.Host, r)
	v, err := alloc.Make[byte](sc, 50<<20, alloc.Evaluation, alloc.Dirty)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = alloc.Make[byte](sc, 40<<20, alloc.Scratch, 0)
	var over *alloc.OverdrawError
	fmt.Println(errors.As(err, &over), err)

	r.Shrink(alloc.HostBytes(60 * alloc.MiB))
	fmt.Println(budget.Stats().Charged)
	r.Close()
	fmt.Println(budget.Stats().Charged) // still in use
	v.Release()
	fmt.Println(budget.Stats().Charged)
	// Output:
	// true stage ntt overdraws its reservation: 40 MiB of host memory for scratch asked, 30 MiB left
	// host 60 MiB
	// host 50 MiB
	// 0 B
}

// A lease ends each of its references once, whoever ends it first.
func ExampleLease() {
	a, err := alloc.Make[byte](nil, 10, alloc.Scratch, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	l := alloc.Adopt(a)
	defer l.Done()
	fmt.Println(l.Bytes(), l.Drop(a), l.Drop(a), l.Bytes())
	// Output: host 10 B true false 0 B
}
