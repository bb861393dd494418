package alloc

import (
	"runtime"
	"testing"
)

// What the tracker counts is what the system sees.
func TestResidentMemoryFollowsTheTracker(t *testing.T) {
	if Debug || runtime.GOOS != "linux" {
		t.Skip("memory of plain builds on Linux")
	}
	before := must[Resident](t)(ResidentNow())
	if before.Current <= 0 || before.Peak < before.Current || before.Anon <= 0 || before.File <= 0 {
		t.Fatalf("%+v", before)
	}
	tr := newTracker()
	const n = 96 << 20
	b := must[*Buffer[byte]](t)(Make[byte](scope(tr, "rss", Host, nil), n, Scratch, Dirty))
	for i := 0; i < n; i += 4096 {
		b.Slice()[i] = 1
	}
	with := must[Resident](t)(ResidentNow())
	if d := with.Anon - before.Anon; d < n*95/100 || d > n*105/100+(8<<20) {
		t.Errorf("%d bytes were touched, %d became resident", n, d)
	}
	b.Release()
	if tr.Pooled(Host) < n {
		t.Fatal("it is not in the pool")
	}
	tr.TrimPool()
	after := must[Resident](t)(ResidentNow())
	if d := after.Anon - before.Anon; d > 16<<20 {
		t.Errorf("%d bytes stay resident", d)
	}
	cur, peak, err := RSS()
	if err != nil || cur <= 0 || peak < with.Current*95/100 {
		t.Errorf("now %d, peak %d, %v", cur, peak, err)
	}
	if err := ResetResidentPeak(); err != nil {
		t.Skip(err)
	}
	if _, peak, _ := RSS(); peak > with.Current-n/2 {
		t.Errorf("the peak is %d after it was reset", peak)
	}
}
