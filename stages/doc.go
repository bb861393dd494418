// Package stages holds the eight stages of a Groth16 prover, one file each,
// and the standard pipeline made of them:
//
//	synthesize ─┬─ prestage ── ntt ── h-msm ────────┐
//	            ├─ batch-add ── tail-msm ───────────┼─ assemble ── proof
//	            └─ b_g2_msm ────────────────────────┘
//
// A stage is bound to a Prover (key, circuit, arithmetic) and never asks which
// processor it runs on: it calls a groth16.Staging, which keeps the vectors of
// a job where it wants them. Each states exactly what it allocates, in host,
// pinned and device memory, and which buffers end with it, so that a pipeline
// with a budget admits a job only when the whole of its path fits; and which
// buffers of its input it reads, so that a job that waits at one branch does not
// keep alive what only another reads.
//
// Who holds what on a CPU, with n the domain and m the wires (32 bytes each):
//
//	w        m·32      synthesize … tail-msm and b_g2_msm
//	a        n·32      synthesize … h-msm (the quotient takes its place)
//	b, c     2·n·32    synthesize … ntt (no c with a folded key)
//	picks    ≤ 12·m    batch-add … tail-msm
//
// On a device a, b and c are let go of on the host when they are copied, which
// prestage begins and ntt waits for, and w when batch-add and b_g2_msm have
// ended. What the device has instead lives as long:
//
//	staged a    n·32      prestage … h-msm
//	staged bc   2·n·32    prestage … ntt
//	picks       its own   batch-add … tail-msm
//
// # Several processors
//
// Prover.Arith may be a Set of several devices; each job stays on one of them.
// The sum of b_g2_msm may be made on another processor (Prover.B2), or on
// either of two, by measurement (Either). A job whose vectors a device has lost,
// that a device could not finish, or whose proof does not verify, is made again
// from its input, on another processor where there is one (Prover.Elsewhere); it
// is answered once, and the result and every error tell all attempts.
//
// A device that its driver does not revive after an error is lost to the process
// (gpu.ErrLost). Its jobs are made again on the next processor, and later ones go
// there at once; the report says so in its notes, and Lost at any time. Where
// there is no other, jobs fail before anything is made of them.
package stages
