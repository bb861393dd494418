package stages

import (
	"context"

	"github.com/snarkline/snarkline/gpu"
	"github.com/snarkline/snarkline/groth16"
	"github.com/snarkline/snarkline/pipeline"
)

// tellDevice says on which device a stage works that works on the job's processor.
// b_g2_msm, which has a choice, says it itself.
func (p *Prover) tellDevice(ctx context.Context, stage string) {
	switch stage {
	case NamePrestage, NameNTT, NameHMSM, NameBatchAdd, NameTailMSM:
		ar, _ := p.turn(ctx)
		onDevice(ctx, ar)
	}
}

// onDevice says that a stage works on ar, if that is a device.
func onDevice(ctx context.Context, ar groth16.Arithmetic) {
	if d, ok := ar.(interface{ Device() gpu.Device }); ok {
		pipeline.OnDevice(ctx, d.Device().Space())
	}
}
