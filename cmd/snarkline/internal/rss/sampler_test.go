package rss

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/snarkline/snarkline/alloc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSamplerSeesMemoryThatIsGone(t *testing.T) {
	before, err := alloc.ResidentNow()
	if err != nil || before.Anon <= 0 {
		t.Skip("this system does not say", err)
	}
	const size = 64 << 20
	s := Sample(time.Millisecond)
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	time.Sleep(20 * time.Millisecond)
	if err := unix.Munmap(mem); err != nil {
		t.Fatal(err)
	}
	if got := s.Stop() - before.Anon; got < size*9/10 || got > size*2 {
		t.Errorf("%d bytes seen, %d were there", got, size)
	}
}
