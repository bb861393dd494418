package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// memoryTotal is the machine's memory in bytes; 0 where the system does not say.
func memoryTotal() int64 {
	kib, _ := strconv.ParseInt(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	return kib << 10
}

// machineText names the machine as far as it matters to a measurement.
func machineText() string {
	text := fmt.Sprintf("%s, %d processors", runtime.GOARCH, runtime.NumCPU())
	if model := procField("/proc/cpuinfo", "model name"); model != "" {
		text += " (" + model + ")"
	}
	if n := memoryTotal(); n > 0 {
		text += ", " + humanize.IBytes(uint64(n))
	}
	return text
}

// procField is the first value of a field "name : value" of a file of the system.
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
