package trace

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// cores is how many processors the program may use at once.
func cores() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// usage reads resident memory from a file that stays open. Where there is no
// such file it reads nothing.
type usage struct {
	statm *os.File
	last  atomic.Int64
}

func (u *usage) open() {
	if f, err := os.Open("/proc/self/statm"); err == nil {
		u.statm = f
	}
}

func (u *usage) close() {
	if u.statm != nil {
		_ = u.statm.Close() // it was only read
	}
}

// due reports whether it is time to look again.
func (u *usage) due(now time.Duration) bool {
	last := u.last.Load()
	return u.statm != nil && (last == 0 || int64(now)-last >= int64(rssEvery)) && u.last.CompareAndSwap(last, int64(now))
}

// resident is the resident memory of the process in bytes, 0 if it is not known.
func (u *usage) resident() int64 {
	var buf [128]byte
	n, _ := u.statm.ReadAt(buf[:], 0) // the end of the file is no error
	fields := bytes.Fields(buf[:n])
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil || pages < 0 || pages > 1<<50 {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// machineMemory is the memory of the machine in bytes, 0 if it is not known.
func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == "MemTotal:" {
			if kb, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil && kb > 0 && kb < 1<<43 {
				return kb << 10
			}
		}
	}
	return 0
}
