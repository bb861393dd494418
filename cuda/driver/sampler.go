package driver

import (
	"fmt"
	"sync"
	"time"
)

// SampleEvery is how often a Sampler asks.
const SampleEvery = 100 * time.Millisecond

// Usage is what a Sampler saw of a card. Shares are 0 to 1, the mean over time.
type Usage struct {
	Samples     int           `json:"samples"`
	Failed      int           `json:"failed,omitempty"` // times that the card did not tell
	Over        time.Duration `json:"over_ns"`
	Compute     float64       `json:"compute"` // share of time in which a kernel ran
	ComputeMax  float64       `json:"compute_max"`
	Memory      float64       `json:"memory"` // share of time in which device memory was busy
	MemoryMax   float64       `json:"memory_max"`
	UsedMax     int64         `json:"used_max"`           // bytes of the card in use, by all programs
	PCIeIn      float64       `json:"pcie_in,omitempty"`  // bytes a second to the device
	PCIeOut     float64       `json:"pcie_out,omitempty"` // bytes a second from the device
	PCIeInMax   float64       `json:"pcie_in_max,omitempty"`
	PCIeOutMax  float64       `json:"pcie_out_max,omitempty"`
	pcieSamples int
}

// String is one line for people.
func (u Usage) String() string {
	return fmt.Sprintf("GPU busy %.0f%% (at most %.0f%%), its memory %.0f%% (%.0f%%), %d samples over %v",
		100*u.Compute, 100*u.ComputeMax, 100*u.Memory, 100*u.MemoryMax, u.Samples, u.Over.Round(time.Millisecond))
}

// source is what a Sampler asks: a Card.
type source interface {
	Utilization() (compute, memory float64, err error)
	Memory() (used, total int64, err error)
	Throughput() (toDevice, fromDevice int64, err error)
}

// Sampler asks a card how busy it is, every SampleEvery, from Sample to Stop.
type Sampler struct {
	card  source
	pcie  bool
	begun time.Time
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu  sync.Mutex
	sum Usage // sums in place of means
}

// Sample starts to watch a card. With pcie it asks for the throughput too, where
// NVML knows it; that takes 40 ms of each 100. Stop ends it.
func (c *Card) Sample(pcie bool) *Sampler { return watch(c, pcie, SampleEvery) }

func watch(c source, pcie bool, every time.Duration) *Sampler {
	s := &Sampler{card: c, pcie: pcie, begun: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run(every)
	return s
}

func (s *Sampler) run(every time.Duration) {
	defer close(s.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.ask()
		}
	}
}

func (s *Sampler) ask() {
	compute, memory, err := s.card.Utilization()
	used, _, errUsed := s.card.Memory()
	var in, out int64
	errPCIe := err
	if s.pcie && err == nil {
		in, out, errPCIe = s.card.Throughput()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.sum
	if err != nil {
		u.Failed++
		return
	}
	u.Samples++
	u.Compute, u.ComputeMax = u.Compute+compute, max(u.ComputeMax, compute)
	u.Memory, u.MemoryMax = u.Memory+memory, max(u.MemoryMax, memory)
	if errUsed == nil {
		u.UsedMax = max(u.UsedMax, used)
	}
	if s.pcie && errPCIe == nil {
		u.pcieSamples++
		u.PCIeIn, u.PCIeInMax = u.PCIeIn+float64(in), max(u.PCIeInMax, float64(in))
		u.PCIeOut, u.PCIeOutMax = u.PCIeOut+float64(out), max(u.PCIeOutMax, float64(out))
	}
}

// Usage is what was seen so far.
func (s *Sampler) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.sum
	if u.Over == 0 {
		u.Over = time.Since(s.begun)
	}
	if n := float64(u.Samples); n > 0 {
		u.Compute, u.Memory = u.Compute/n, u.Memory/n
	}
	if n := float64(u.pcieSamples); n > 0 {
		u.PCIeIn, u.PCIeOut = u.PCIeIn/n, u.PCIeOut/n
	}
	return u
}

// Stop ends the watch and says what was seen. A second Stop says the same.
func (s *Sampler) Stop() Usage {
	s.once.Do(func() {
		close(s.stop)
		<-s.done
		s.mu.Lock()
		s.sum.Over = time.Since(s.begun)
		s.mu.Unlock()
	})
	return s.Usage()
}
