package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/snarkline/snarkline/alloc"
	cpuarith "github.com/snarkline/snarkline/cpu"
	"github.com/snarkline/snarkline/curve"
	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/stages"
)

// placement is how a key and its jobs are placed on a card.
type placement struct {
	keyBytes int64        // of the points that were to stay there
	resident int64        // of those that do
	keyUp    int64        // bytes that went to the card for that
	need     int64        // of one job at its largest
	room     int64        // for jobs
	tier     gpu.Decision // of the first job, foretold
}

// keyPoints are the vectors of a key that a card keeps; without those in G2
// where the CPU sums them.
func keyPoints(k *groth16.ProvingKey, b2 bool) []curve.Points {
	all := []curve.Points{k.H, k.L.Points, k.A.Points, k.B1.Points}
	if b2 {
		all = append(all, k.B2.Points)
	}
	return all
}

// ask settles what a job needs of a card, before the key comes: the engine keeps
// that free of keys.
func (p *processors) ask(c *onCard, prover *stages.Prover, host *cpuarith.Engine) error {
	for _, v := range keyPoints(prover.Key, p.a.flags.B2 != "cpu") {
		c.keyBytes += int64(len(v.Data))
	}
	one := *prover
	one.Arith, one.B2, one.Elsewhere = c.engine, p.forB2(c.engine, host), nil
	need, err := stages.Need(&one, stages.BatchOptions{})
	if err != nil {
		return err
	}
	c.need = need[c.card.Space()]
	return nil
}

// keep brings the key to all cards. What a card has no room for, or fails to
// take, is streamed.
func (p *processors) keep(prover *stages.Prover, ar groth16.Arithmetic, host *cpuarith.Engine) error {
	all := *prover
	all.Arith, all.B2, all.Elsewhere = ar, p.forB2(ar, host), nil
	err := stages.Keep(p.a.scope("key"), &all)
	switch {
	case err == nil:
	case p.a.ctx.Err() != nil:
		return context.Cause(p.a.ctx)
	default:
		p.a.notef("points of the key stay in host memory: %v", err)
	}
	return nil
}

// place settles how much the key has left on a card for jobs.
func (p *processors) place(c *onCard, prover *stages.Prover) error {
	key := prover.Key
	if lost := c.engine.Lost(); lost != nil {
		return p.a.flags.unusable(lost)
	}
	s := c.engine.Stats()
	c.resident, c.keyUp = s.Resident, s.Up
	free, _, err := c.card.Memory()
	if err != nil {
		return p.a.flags.unusable(fmt.Errorf("%v (%s): %w", c.card, c.info.Name, err))
	}
	c.room = free - c.margin
	vector := int64(curve.ScalarBytes) << key.Domain.Log
	r := gpu.Vectors(vector, key.Folded, 0)
	r.Later = max(c.need-r.Tiers[0].Bytes, 0)
	c.tier = r.Fit(free, c.margin)
	return nil
}

// announce says what proves.
func (p *processors) announce() {
	for _, r := range p.refuse {
		p.a.notef("a card is not used: %s", r)
	}
	if len(p.cards) == 0 {
		p.a.notef("proving on the CPU (%s)", cpuText())
		return
	}
	for _, c := range p.cards {
		p.a.notef("proving on %s%s", c.text(), p.b2Text())
	}
}

// text is "cuda:0 (NVIDIA H200, 139 GiB free); key points resident: …; tier …".
func (c *onCard) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v (%s, %s free", c.card, c.info.Name, sizeText(c.free))
	if c.bounded {
		fmt.Fprintf(&s, ", %s may be used", sizeText(c.free-c.margin))
	}
	s.WriteString("); key points resident: ")
	switch {
	case c.resident >= c.keyBytes:
		s.WriteString(sizeText(c.resident))
	case c.resident == 0:
		fmt.Fprintf(&s, "none of %s, they are streamed", sizeText(c.keyBytes))
	default:
		fmt.Fprintf(&s, "%s of %s, the others are streamed", sizeText(c.resident), sizeText(c.keyBytes))
	}
	fmt.Fprintf(&s, "; %s", c.tier)
	return s.String()
}

func (p *processors) b2Text() string {
	switch p.a.flags.B2 {
	case "cpu":
		return "; b_g2_msm on the CPU"
	case "device":
		return "; b_g2_msm on the card"
	}
	return ""
}

// vectorKernels reports whether the CPU has what the arithmetic's vector
// kernels need.
func vectorKernels() bool {
	x := &cpu.X86
	return x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512IFMA && x.HasAVX512VBMI2
}

// cpuText is "16 cores, AVX-512 IFMA kernels".
func cpuText() string {
	n := runtime.GOMAXPROCS(0)
	s := fmt.Sprintf("%d cores", n)
	if n == 1 {
		s = "1 core"
	}
	if vectorKernels() {
		return s + ", AVX-512 IFMA kernels"
	}
	return s + ", no vector kernels"
}

// pinnedPeak is the most page-locked host memory at one moment.
func pinnedPeak(m alloc.Snapshot) int64 { return m.Space(alloc.Pinned).Peak }
