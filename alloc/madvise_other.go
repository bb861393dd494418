//go:build unix && !linux && !race

package alloc

func adviseHuge([]byte) {}
