//go:build unix && !linux

package alloc

func adviseHuge([]byte) {}
