package emulator

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"unsafe"
)

func ramp(n int, f func(uint32) uint32) []uint32 {
	v := make([]uint32, n)
	for i := range v {
		v[i] = f(uint32(i))
	}
	return v
}

// orders are the ways in which a block's threads start, and numbers of OS
// threads.
func orders(t *testing.T, f func(t *testing.T, m *machine)) {
	for _, c := range []Config{{Threads: 1}, {Threads: 4, Order: 1}, {Threads: 3, Order: 7}, {Mode: Eager, Order: 2}, {Mode: Late}} {
		t.Run(fmt.Sprintf("threads=%d,order=%d,%s", c.Threads, c.Order, c.Mode), func(t *testing.T) {
			f(t, start(t, c))
		})
	}
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("%s: at %d of %d: %v, want %v", what, i, len(want), got[i], want[i])
		}
	}
	t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
}

func TestKernels(t *testing.T) {
	orders(t, func(t *testing.T, m *machine) {
		const n = 10000
		in := ramp(n, func(i uint32) uint32 { return i * 2654435761 })
		din, dout := upload(m, in), m.alloc(8*n)
		m.run("probe_double", (n+255)/256, 256, 0, din, dout, uint32(n))
		equal(t, "double", download[uint32](m, dout, n), ramp(n, func(i uint32) uint32 { return 2 * in[i] }))

		m.run("probe_sum", (n+255)/256, 256, 0, din, dout, uint32(n))
		sums := make([]uint64, (n+255)/256)
		for i, v := range in {
			sums[i/256] += uint64(v)
		}
		equal(t, "sums", download[uint64](m, dout, len(sums)), sums)

		m.run("probe_reverse", n/1000, 1000, 4000, din)
		equal(t, "reverse", download[uint32](m, din, n), ramp(n, func(i uint32) uint32 { return in[i/1000*1000+999-i%1000] }))
	})
}

func TestPlaces(t *testing.T) {
	m := start(t, Config{})
	gx, gy, gz, bx, by, bz := uint32(3), uint32(4), uint32(2), uint32(5), uint32(3), uint32(7)
	n := gx * gy * gz * bx * by * bz
	out := m.alloc(uint64(12 * n))
	m.must(m.LaunchKernel(m.function("probe_place"), gx, gy, gz, bx, by, bz, 0, m.stream, args(out), nil))
	m.must(m.StreamSynchronize(m.stream))
	got := download[uint32](m, out, int(3*n))
	for i := range n {
		b, th := i/(bx*by*bz), i%(bx*by*bz)
		want := []uint32{
			th%bx | th/bx%by<<10 | th/(bx*by)<<20,
			b%gx | b/gx%gy<<10 | b/(gx*gy)<<20, b,
		}
		equal(t, fmt.Sprintf("thread %d", i), got[3*i:3*i+3], want)
	}
}

func TestDivergentBarriers(t *testing.T) {
	orders(t, func(t *testing.T, m *machine) {
		const n = 200
		out := m.alloc(4 * n)
		m.run("probe_divergent", 1, n, 0, out)
		// In round k the threads after k add one each; thread k leaves after round k-1.
		equal(t, "counts", download[uint32](m, out, n), ramp(n, func(i uint32) (v uint32) {
			for k := range i {
				v += n - 1 - k
			}
			return v
		}))
	})
}

func TestWarps(t *testing.T) {
	orders(t, func(t *testing.T, m *machine) {
		const n = 96
		in := ramp(n, func(i uint32) uint32 { return i * i * 2654435761 >> 7 })
		din, out := upload(m, in), m.alloc(4*8*n)
		m.run("probe_warp", 1, n, 0, din, out)
		got := download[uint32](m, out, 8*n)
		for i := range uint32(n) {
			base, l := i&^31, i&31
			v := func(lane uint32) uint32 { return in[base+lane] }
			want := []uint32{v((l + 5) & 31), v(l), v(l), v(l ^ 9), 0, 0, 0, 0}
			if l >= 3 {
				want[1] = v(l - 3)
			}
			if l+7 < 32 {
				want[2] = v(l + 7)
			}
			for k := range uint32(32) {
				want[4] |= v(k) & 1 << k
				if v(k)&7 == v(l)&7 {
					want[5] |= 1 << k
				}
				if l&1 == 1 && k&1 == 1 {
					want[6] += v(k)
				}
				if l&1 == 0 && k&1 == 0 {
					want[6] |= v(k) >> 1 & 1 << k
				}
			}
			if l < 20 {
				want[7] = 0xdeadbeef
			}
			equal(t, fmt.Sprintf("thread %d", i), got[8*i:8*i+8], want)
		}

		// Those who have left are waited for no more.
		m.must(m.MemsetD32Async(out, 0, 70, m.stream))
		m.run("probe_leave", 1, 70, 0, out)
		equal(t, "leave", download[uint32](m, out, 70), ramp(70, func(i uint32) (v uint32) {
			if i%3 == 0 {
				return 0
			}
			for k := i &^ 31; k < min(i&^31+32, 70); k++ {
				if k%3 != 0 {
					v |= 1 << (k & 31)
				}
			}
			return v
		}))
	})
}

func TestAtomics(t *testing.T) {
	m := start(t, Config{Threads: 4})
	const n = 1 << 17
	w, d := upload(m, []uint32{0, 0, 0, ^uint32(0)}), upload(m, []uint64{5})
	m.run("probe_atomics", n/128, 128, 0, w, d, uint32(n-1))
	var sum uint32
	var wide uint64 = 5
	for i := range uint32(n - 1) {
		sum += i
		wide += uint64(i) << 20
	}
	equal(t, "words", download[uint32](m, w, 4), []uint32{sum, ^uint32(0), n - 2, n - 1})
	equal(t, "wide", download[uint64](m, d, 1), []uint64{wide})
}

// An asynchronous copy is not there before it was waited for.
func TestAsynchronousCopies(t *testing.T) {
	m := start(t, Config{})
	in := ramp(256, func(i uint32) uint32 { return 1000 + i })
	din, out := upload(m, in), m.alloc(4*64)
	for _, early := range []bool{false, true} {
		m.run("probe_copy", 1, 32, 0, din, out, map[bool]uint32{true: 1}[early])
		equal(t, fmt.Sprintf("early %v", early), download[uint32](m, out, 64), ramp(64, func(i uint32) uint32 {
			if early {
				return 7
			}
			return in[8*(i/2)+1+5*(i%2)]
		}))
	}
}

// Blocks may wait for those before them.
func TestChainOfBlocks(t *testing.T) {
	for _, threads := range []int{1, 4} {
		m := start(t, Config{Threads: threads})
		const n = 300
		flags, out := m.alloc(4*n), m.alloc(4*n)
		m.must(m.MemsetD8Async(flags, 0, 4*n, m.stream))
		m.run("probe_chain", n, 32, 0, flags, out)
		equal(t, "chain", download[uint32](m, out, n), ramp(n, func(i uint32) uint32 { return i + 1 }))
	}
}

func TestArguments(t *testing.T) {
	m := start(t, Config{Mode: Late})
	out := m.alloc(40)
	type probeStruct struct {
		w [5]uint32
		d uint64
	}
	s := probeStruct{[5]uint32{1, 2, 3, 4, 5}, 0x1122334455667788}
	a, b := uint32(9), uint64(0xaabbccdd00112233)
	params := []unsafe.Pointer{unsafe.Pointer(&a), unsafe.Pointer(&b), unsafe.Pointer(&s), unsafe.Pointer(&out)}
	m.must(m.LaunchKernel(m.function("probe_args"), 1, 1, 1, 1, 1, 1, 0, m.stream, unsafe.Pointer(&params[0]), nil))
	s.w[0], a, b = 77, 77, 77 // the launch has copies
	m.must(m.StreamSynchronize(m.stream))
	equal(t, "arguments", download[uint32](m, out, 10),
		[]uint32{9, 0x00112233, 0xaabbccdd, 1, 2, 3, 4, 5, 0x55667788, 0x11223344})
}

// A launch of many blocks without barriers, and of as many with them.
func BenchmarkLaunch(b *testing.B) {
	bench := func(name string, per int, kernel string, grid, block uint32, n uint32) {
		b.Run(name, func(b *testing.B) {
			m := start(b, Config{})
			din, out := upload(m, ramp(1<<16, bits.Reverse32)), m.alloc(4<<16)
			for b.Loop() {
				m.run(kernel, grid, block, 0, din, out, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(per), "ns/each")
		})
	}
	bench("launch", 1, "probe_double", 1, 32, 0)
	bench("thread", 1<<16, "probe_double", 256, 256, 0)
	bench("thread-barrier", 9<<16, "probe_sum", 256, 256, 1<<16)
}
