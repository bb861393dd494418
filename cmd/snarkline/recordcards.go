package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/snarkline/snarkline/cuda"
	"github.com/snarkline/snarkline/trace"
)

// pciDevices is where the system shows what is on its PCIe bus.
const pciDevices = "/sys/bus/pci/devices"

// mostPCIe is more than any PCIe link of today carries, in bytes a second. What
// seems to be faster was not measured: the host had no work with it.
const mostPCIe = 70e9

// recorded is what a recording says of the cards and of what carries bytes to them.
// Before the run no traffic is known.
func (p *processors) recorded() (devices []trace.Device, links []trace.Link) {
	at := make(map[string]int)
	for _, c := range p.cards {
		s := c.engine.Stats()
		d := trace.Device{Name: fmt.Sprintf("%v (%s)", c.card, c.info.Name), Space: c.card.Space(), Memory: c.info.Total,
			Link: linkName(pciDevices, c.info.PCI), Up: max(s.Up-c.keyUp, 0), Down: s.Down}
		if d.Link != "" {
			i, ok := at[d.Link]
			if !ok {
				i = len(links)
				at[d.Link] = i
				links = append(links, trace.Link{Name: d.Link})
			}
			links[i].BytesPerSecond = max(links[i].BytesPerSecond, uploadRate(&s))
		}
		devices = append(devices, d)
	}
	return devices, links
}

// linkName names what connects the card at a PCI address with the processors: the
// port of the host bridge that it is behind, which cards behind one switch share.
// Where the system does not tell it is the card's own address.
func linkName(root, pci string) string {
	if pci == "" {
		return ""
	}
	name := "PCIe " + pci
	path, err := filepath.EvalSymlinks(filepath.Join(root, pci))
	if err != nil {
		return name
	}
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		if strings.Count(part, ":") == 2 { // the first address behind the bridge
			return "PCIe " + part
		}
	}
	return name
}

// uploadRate is how many bytes a second can go to a card: those of the vector that
// was brought fastest, as they were on the way; 0 if that is not known.
func uploadRate(s *cuda.Stats) float64 {
	rate := float64(s.Uploads.Fastest)
	if s.Unpacked > 0 {
		rate *= float64(s.Packed) / float64(s.Unpacked)
	}
	if rate < mostPCIe {
		return rate
	}
	return 0
}
