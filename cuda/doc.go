// Package cuda is the arithmetic of a Groth16 proof on a CUDA device: an Engine
// for a curve on a card. It satisfies groth16.Arithmetic and groth16.Staging
// without importing them. The kernels are in package kernels, the driver's
// binding in package driver, and package emulator stands in for both the driver
// and the card.
//
// # Use
//
// Open finds the cards, New makes an Engine on one, and a stages.Prover takes it
// as its Arith; stages.Keep brings the key's points to the card. The program
// examples/card in this repository has all of it, with the CPU to fall back on.
// Where there is no card the error is gpu.ErrNoDevice; package emulator is one to
// try with. Close the key first, then the engine, then the driver.
//
// # Memory
//
// A card's memory is given out by one ledger for all engines on it. What jobs
// keep from stage to stage (their vectors, their witness) is granted at once or
// not at all: where there is no room the job keeps less on the card, and brings
// what it needs when it needs it. Operations take their scratch when they begin
// and give it back when they return; they wait for one another, first come first
// served. Points of keys and tables of the transforms stay on the card while
// there is room for them, and are given up when there is none.
//
// Everything is counted: vectors as buffers in the card's space, scratch as
// foreign memory there (both drawn from the scope of the call), page-locked
// buffers to copy through in alloc.Pinned.
//
// # Order
//
// An operation runs on one worker, on its stream, from its first copy to its
// result. Vectors are brought by a stream of their own, with an event each, so
// that those of the next job come while this one's are worked on. Where points
// are not on the card, they come in pieces through two buffers: events order
// the copies and the kernels, and the host waits for neither.
//
// # Errors
//
// Every status is checked. What the device does wrong is an *Error: it is
// temporary, and says whether the job must begin again. Out of memory is tried
// again with both pools trimmed, and then with smaller plans. An error that ends
// the device's context is answered by a reset; what was on the card is lost.
package cuda
