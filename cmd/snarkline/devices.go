package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/gpu"
)

// devicesCmd lists cards.
type devicesCmd struct{}

// Help is the longer text of `snarkline devices --help`.
func (*devicesCmd) Help() string {
	return `Lists the CUDA cards that can prove, with their memory and who else is on them,
says which of them --device auto takes, and, where there is none, what is missing.
The driver of the cards is all that is needed: no CUDA toolkit.

The exit code is 0 when the listing worked, whether there is a card or not.`
}

// devicesResult is the result for --json. Bytes are whole numbers.
type devicesResult struct {
	OK      bool          `json:"ok"`
	Cards   []listedCard  `json:"cards"`
	Auto    []string      `json:"auto"`              // what --device auto takes
	Missing string        `json:"missing,omitempty"` // why there is no card
	Driver  *driverReport `json:"driver,omitempty"`
	Nodes   []string      `json:"device_nodes"`
	NVML    string        `json:"nvml_missing,omitempty"` // why nobody tells how busy they are
	CPU     cpuReport     `json:"cpu"`
}

type driverReport struct {
	Library string `json:"library"`
	CUDA    string `json:"cuda"`              // version of its interface, "13.0"
	Version string `json:"version,omitempty"` // as NVML says it, "580.95.05"
}

type cpuReport struct {
	Cores   int  `json:"cores"`
	Vectors bool `json:"vector_kernels"`
}

// listedCard is one card. What is nil is not known.
type listedCard struct {
	Device      string   `json:"device"`
	Name        string   `json:"name"`
	UUID        string   `json:"uuid"`
	PCI         string   `json:"pci"`
	Capability  string   `json:"compute_capability"`
	SMs         int      `json:"multiprocessors"`
	Free        *int64   `json:"free_bytes"`
	Total       int64    `json:"total_bytes"`
	Others      *int64   `json:"used_by_others_bytes"`
	Utilization *float64 `json:"utilization"` // 0 to 1
	Auto        bool     `json:"auto"`
	Unusable    string   `json:"unusable,omitempty"`
}

// Run lists them.
func (*devicesCmd) Run(a *app) error {
	r := devicesResult{OK: true, Cards: []listedCard{}, Auto: []string{}, Nodes: deviceNodes(),
		CPU: cpuReport{runtime.GOMAXPROCS(0), vectorKernels()}}
	if err := r.look(); err != nil {
		r.Missing = err.Error()
	}
	for _, c := range r.Cards {
		if c.Auto {
			r.Auto = append(r.Auto, c.Device)
		}
	}
	if len(r.Auto) == 0 {
		r.Auto = append(r.Auto, "cpu")
	}
	return a.result(r, r.write)
}

// look asks the driver.
func (r *devicesResult) look() (err error) {
	drv, err := driver.Open("")
	if err != nil {
		return err
	}
	defer func() { _ = drv.Close() }()
	r.Driver = &driverReport{Library: drv.Path(), CUDA: fmt.Sprintf("%d.%d", drv.Version()/1000, drv.Version()%1000/10)}
	nvml, err := driver.OpenNVML("")
	if err != nil {
		r.NVML = err.Error()
	} else {
		defer func() { _ = nvml.Close() }()
		if r.Driver.Version, err = nvml.DriverVersion(); err != nil {
			r.NVML = err.Error()
		}
	}
	devs, err := drv.Devices()
	if err != nil {
		return err
	}
	for _, dev := range devs {
		c := listCard(dev)
		if nvml != nil {
			if err := c.ask(nvml); err != nil {
				r.NVML = err.Error()
			}
		}
		r.Cards = append(r.Cards, c)
	}
	return nil
}

// listCard is what the driver says of a card, on which that makes a context:
// one that cannot be had is found here.
func listCard(dev gpu.Device) listedCard {
	i := dev.Info()
	c := listedCard{Device: fmt.Sprintf("cuda:%d", i.Index), Name: i.Name, UUID: i.UUID, PCI: i.PCI,
		Capability: capability(i), SMs: i.SMs, Total: i.Total}
	free, total, err := dev.Memory()
	switch {
	case err != nil:
		c.Unusable = err.Error()
	case free <= gpu.DefaultMargin:
		c.Unusable = fmt.Sprintf("%s are free, and %s are kept back", sizeText(free), sizeText(gpu.DefaultMargin))
	}
	if err == nil {
		c.Free, c.Total = &free, total
	}
	c.Auto = c.Unusable == ""
	return c
}

// ask is what NVML says of it. Some cards and some systems do not tell all.
func (c *listedCard) ask(nvml *driver.NVML) error {
	card, err := nvml.Card(c.UUID)
	if err != nil {
		return err
	}
	var errs []error
	if n, err := card.OthersMemory(); err == nil {
		c.Others = &n
	} else if !errors.Is(err, errors.ErrUnsupported) {
		errs = append(errs, err)
	}
	if busy, _, err := card.Utilization(); err == nil {
		c.Utilization = &busy
	} else if !errors.Is(err, errors.ErrUnsupported) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// write is the listing for people.
func (r *devicesResult) write(w io.Writer) error {
	var b strings.Builder
	if len(r.Cards) > 0 {
		fmt.Fprintf(&b, "%-8s%-26s%11s%12s%12s%15s%6s  %s\n", "device", "name", "capability", "free", "total", "used by others", "busy", "auto")
	}
	for _, c := range r.Cards {
		use := "yes"
		if !c.Auto {
			use = "no"
		}
		fmt.Fprintf(&b, "%-8s%-26s%11s%12s%12s%15s%6s  %s\n", c.Device, cut(c.Name, 25), c.Capability,
			known(c.Free, sizeText), sizeText(c.Total), known(c.Others, sizeText), known(c.Utilization, share), use)
		if c.Unusable != "" {
			fmt.Fprintf(&b, "        cannot be used now: %s\n", c.Unusable)
		}
	}
	if r.Driver != nil {
		fmt.Fprintf(&b, "driver  CUDA %s", r.Driver.CUDA)
		if r.Driver.Version != "" {
			fmt.Fprintf(&b, " (%s)", r.Driver.Version)
		}
		fmt.Fprintf(&b, ", %s\n", r.Driver.Library)
	}
	if r.Missing != "" {
		fmt.Fprintf(&b, "no card can be used: %s\n", r.Missing)
		fmt.Fprintf(&b, "nodes   %s\n", nodesText(r.Nodes))
	}
	if r.NVML != "" && r.Missing == "" {
		fmt.Fprintf(&b, "nvml    how busy the cards are is not known: %s\n", r.NVML)
	}
	fmt.Fprintf(&b, "cpu     %s\n", cpuText())
	fmt.Fprintf(&b, "--device auto proves on %s\n", r.autoText())
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *devicesResult) autoText() string {
	switch n := len(r.Auto); {
	case n == 1 && r.Auto[0] == "cpu":
		return "the CPU"
	case n == 1:
		return r.Auto[0]
	default:
		return strings.Join(r.Auto, ", ") + " (one proof: on the one with the most free memory)"
	}
}

// known is the text of a value, or a dash.
func known[T any](v *T, text func(T) string) string {
	if v == nil {
		return "-"
	}
	return text(*v)
}

func share(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }

// cut keeps a text within n columns.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
