package alloc

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident is the memory of the process as the system sees it, in bytes.
type Resident struct {
	Current int64 `json:"current"`
	Peak    int64 `json:"peak"`
	Anon    int64 `json:"anon"` // of Current: memory proper; −1 where unknown
	File    int64 `json:"file"` // of Current: pages of mapped files; −1 where unknown
}

// ResidentNow asks the system. The peak is that of the whole life of the
// process; ResetResidentPeak begins it anew.
func ResidentNow() (r Resident, err error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return r, fmt.Errorf("read resident memory: %w", err)
	}
	defer func() { _ = f.Close() }()
	fields := map[string]*int64{"VmRSS": &r.Current, "VmHWM": &r.Peak, "RssAnon": &r.Anon, "RssFile": &r.File}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		name, rest, _ := strings.Cut(sc.Text(), ":")
		at := fields[name]
		if at == nil {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if err != nil {
			return r, fmt.Errorf("read resident memory: /proc/self/status, %s: %w", name, err)
		}
		*at = kb * KiB
	}
	if err := sc.Err(); err != nil {
		return r, fmt.Errorf("read resident memory: %w", err)
	}
	return r, nil
}

// ResetResidentPeak makes the peak what is resident now.
func ResetResidentPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of resident memory: %w", err)
	}
	return nil
}
