package bls12381

import "testing"

// TestXYZZG1 compares the formulas with gnark-crypto's on the special cases too.
func TestXYZZG1(t *testing.T) {
	rng := newRand(t)
	pts := pointsG1(rng, 40, true)
	for i := range pts {
		for j := range pts {
			var neg pointG1
			neg.Neg(&pts[j])
			for _, b := range []pointG1{pts[j], neg, pts[i], {}} {
				var want pointG1
				want.Add(&pts[i], &b)
				var p, q xyzzG1
				p.setAffine(&pts[i])
				p.addAffine(&b)
				if p.affine() != want {
					t.Fatalf("addAffine of %d and %d", i, j)
				}
				// other coordinates of the same points
				p.setAffine(&pts[i])
				q.setAffine(&b)
				p.times(3)
				q.times(3)
				p.add(&q)
				var three xyzzG1
				three.setAffine(&want)
				three.times(3)
				if p.affine() != three.affine() {
					t.Fatalf("add of %d and %d", i, j)
				}
			}
		}
	}
}
