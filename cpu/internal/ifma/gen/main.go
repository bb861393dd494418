// Command gen writes the assembly of package ifma. It is a module of its own so
// that the main module does not depend on avo.
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	kernel := flag.String("kernel", "", "which file to write: g1_381, g2_381, g1_254, g2_254, fr_381, fr_254, vec_fp381, vec_fp254, vec_fr381, vec_fr254, sort")
	flag.Parse()
	ConstraintExpr("amd64,!purego")
	switch *kernel {
	case "g1_381":
		fp381.data()
		(&group{fp381, 1, "G1x381"}).emit()
	case "g2_381":
		fp381.data()
		(&group{fp381, 2, "G2x381"}).emit()
	case "g1_254":
		fp254.data()
		(&group{fp254, 1, "G1x254"}).emit()
	case "g2_254":
		fp254.data()
		(&group{fp254, 2, "G2x254"}).emit()
	case "fr_381":
		fr381.data()
		(&ntt{field: fr381}).emit()
	case "fr_254":
		fr254.data()
		(&ntt{field: fr254}).emit()
	case "vec_fp381":
		emitVector(fp381, "Fp381")
	case "vec_fp254":
		emitVector(fp254, "Fp254")
	case "vec_fr381":
		emitVector(fr381, "Fr381")
	case "vec_fr254":
		emitVector(fr254, "Fr254")
	case "sort":
		emitSort()
	default:
		fmt.Fprintln(os.Stderr, "gen: unknown kernel", *kernel)
		os.Exit(2)
	}
	Generate()
}

func emitVector(f *field, tag string) {
	v := &vector{f, tag}
	v.prepare()
	v.emit()
}
