//go:build amd64 && !purego

package ifma

import "unsafe"

// pairwise adapts a product kernel that takes two records an iteration.
func pairwise(f func(dst, a, b *byte, n, step int), rec int) func(dst, a, b, tmp *byte, n int, backward bool) {
	return func(dst, a, b, _ *byte, n int, backward bool) {
		if n == 0 {
			return
		}
		step := 2 * rec
		if backward {
			last := (n - 2) * rec
			dst, a, b, step = add(dst, last), add(a, last), add(b, last), -step
		}
		f(dst, a, b, n/2, step)
	}
}

// single adapts a product kernel that takes one record an iteration.
func single(f func(dst, a, b, tmp *byte, n, step int), rec int) func(dst, a, b, tmp *byte, n int, backward bool) {
	return func(dst, a, b, tmp *byte, n int, backward bool) {
		if n == 0 {
			return
		}
		step := rec
		if backward {
			last := (n - 1) * rec
			dst, a, b, step = add(dst, last), add(a, last), add(b, last), -step
		}
		f(dst, a, b, tmp, n, step)
	}
}

func add(p *byte, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), n)) }

func kernelsG1x381() *kernels {
	const rec = recFields * 512
	return &kernels{
		sortKernels: sortKernels{digits, place, placePicked},

		nl: 8, nc: 1, words: 6, infWord: 7, recBytes: rec, one: one381(),
		loadPoints: loadPointsG1x381, loadRows: loadRowsG1x381, convert: convertG1x381,
		mul: pairwise(mulG1x381, rec),
		x3:  func(r *byte, n int) { x3G1x381(r, n/2) },
		y3:  func(r, rows *byte, dst *uint32, n int) { y3G1x381(r, rows, dst, n/2) },
	}
}

func kernelsG2x381() *kernels {
	const rec = recFields * 1024
	return &kernels{
		sortKernels: sortKernels{digits, place, placePicked},

		nl: 8, nc: 2, words: 6, infWord: 7, recBytes: rec, one: one381(),
		loadPoints: loadPointsG2x381, loadRows: loadRowsG2x381, convert: convertG2x381,
		mul: single(mulG2x381, rec), x3: x3G2x381, y3: y3G2x381,
	}
}

func kernelsG1x254() *kernels {
	const rec = recFields * 320
	return &kernels{
		sortKernels: sortKernels{digits, place, placePicked},

		nl: 5, nc: 1, words: 4, infWord: 3, recBytes: rec, one: one254(),
		loadPoints: loadPointsG1x254, loadRows: loadRowsG1x254, convert: convertG1x254,
		mul: pairwise(mulG1x254, rec),
		x3:  func(r *byte, n int) { x3G1x254(r, n/2) },
		y3:  func(r, rows *byte, dst *uint32, n int) { y3G1x254(r, rows, dst, n/2) },
	}
}

func kernelsG2x254() *kernels {
	const rec = recFields * 640
	return &kernels{
		sortKernels: sortKernels{digits, place, placePicked},

		nl: 5, nc: 2, words: 4, infWord: 3, recBytes: rec, one: one254(),
		loadPoints: loadPointsG2x254, loadRows: loadRowsG2x254, convert: convertG2x254,
		mul: single(mulG2x254, rec), x3: x3G2x254, y3: y3G2x254,
	}
}

func nttKernels381() *nttKernels {
	return &nttKernels{
		loadElementsX381, storeElementsX381, loadWordsX381, storeWordsX381, loadBlocksX381, storeBlocksX381,
		splitR4x381, splitR2x381, splitLastX381, joinFirstX381, joinR4x381, joinR2x381,
		mulVecx381, mulOnex381, expandx381,
	}
}

func nttKernels254() *nttKernels {
	return &nttKernels{
		loadElementsX254, storeElementsX254, loadWordsX254, storeWordsX254, loadBlocksX254, storeBlocksX254,
		splitR4x254, splitR2x254, splitLastX254, joinFirstX254, joinR4x254, joinR2x254,
		mulVecx254, mulOnex254, expandx254,
	}
}

func kernelsFp381() fieldKernels { return fieldKernels{loadFp381, storeFp381, mulFp381} }
func kernelsFp254() fieldKernels { return fieldKernels{loadFp254, storeFp254, mulFp254} }
func kernelsFr381() fieldKernels { return fieldKernels{loadFr381, storeFr381, mulFr381} }
func kernelsFr254() fieldKernels { return fieldKernels{loadFr254, storeFr254, mulFr254} }
