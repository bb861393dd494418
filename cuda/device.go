package cuda

import "github.com/snarkline/snarkline/gpu"

// Device is the card that the engine is on, as a device: where a set that jobs are
// spread over asks for room.
func (e *Engine) Device() gpu.Device { return e.card }
