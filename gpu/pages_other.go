//go:build unix && !linux

package gpu

func adviseHuge([]byte) {}
