// Package stages holds the eight stages of a Groth16 prover, one file each,
// and the standard pipeline made of them:
//
//	synthesize ─┬─ prestage ── ntt ── h-msm ────────┐
//	            ├─ batch-add ── tail-msm ───────────┼─ assemble ── proof
//	            └─ b_g2_msm ────────────────────────┘
//
// A stage is bound to a Prover (key, circuit, arithmetic) and never asks which
// processor it runs on. Each states exactly what it allocates and which
// buffers end with it, so that a pipeline with a budget admits a job only when
// the whole of its path fits; and which buffers of its input it reads, so that
// a job that waits at one branch does not keep alive what only another reads.
//
// Who holds what, with n the domain and m the wires (32 bytes each):
//
//	w        m·32      synthesize … tail-msm and b_g2_msm
//	a        n·32      synthesize … h-msm (the quotient takes its place)
//	b, c     2·n·32    synthesize … ntt (no c with a folded key)
//	picks    ≤ 12·m    batch-add … tail-msm
package stages
