package gpu_test

import (
	"fmt"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/gpu/gputest"
)

// Two workers upload from the same pages: the second registration is the first.
func ExampleRegistry() {
	dev := gputest.One(64 * alloc.MiB)
	registry := gpu.NewRegistry()
	sc := alloc.NewScope(alloc.StageOf("prestage"), alloc.Host, nil)
	vector, err := alloc.Make[uint64](sc, 1<<17, alloc.Evaluation, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	one, err := registry.PinBuffer(dev, sc, vector)
	if err != nil {
		fmt.Println(err)
		return
	}
	two, err := registry.PinBuffer(dev, sc, vector)
	if err != nil {
		fmt.Println(err)
		return
	}
	st := registry.Stats()
	fmt.Println(st.Runs, "registration with", st.Users, "users")
	one.Release()
	vector.Release() // the second keeps it
	fmt.Println(registry.Stats().Users, "user left")
	two.Release()
	fmt.Println(registry.Stats().Bytes, "bytes registered")
	// Output:
	// 1 registration with 2 users
	// 1 user left
	// 0 bytes registered
}

// The vectors of one item after another are brought to a card of 1 GiB.
func ExamplePlanner() {
	dev := gputest.One(1 * alloc.GiB)
	planner := gpu.NewPlanner(dev, 128*alloc.MiB)
	var claims []*gpu.Claim
	for range 3 {
		claim, err := planner.Claim(gpu.Vectors(250*alloc.MiB, true, 0))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(claim.Decision())
		claims = append(claims, claim)
	}
	for _, claim := range claims {
		claim.Close()
	}
	// Output:
	// tier 1 of 3: a and b (500 MiB) in device memory, 1.0 GiB free
	// tier 2 of 3: a (250 MiB) in device memory, 524 MiB free, 628 MiB needed for a and b
	// tier 3 of 3: nothing in device memory, 274 MiB free, 378 MiB needed for a
}

// Which tier a card will have room for, before there is one.
func ExampleRequest_Fit() {
	for _, gib := range []int64{24, 16, 8, 4} {
		fmt.Println(gpu.Vectors(4*alloc.GiB, false, 0).Fit(gib*alloc.GiB, gpu.DefaultMargin))
	}
	// Output:
	// tier 1 of 3: a, b and c (12 GiB) in device memory, 24 GiB free
	// tier 1 of 3: a, b and c (12 GiB) in device memory, 16 GiB free
	// tier 2 of 3: a (4.0 GiB) in device memory, 8.0 GiB free, 13 GiB needed for a, b and c
	// tier 3 of 3: nothing in device memory, 4.0 GiB free, 4.5 GiB needed for a
}
