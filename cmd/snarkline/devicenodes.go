package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/snarkline/snarkline/cuda/driver"
	"github.com/snarkline/snarkline/gpu"
)

// nodePatterns are where a system shows that it has a card: the nodes of
// NVIDIA's kernel driver, and of its embedded boards.
var nodePatterns = []string{"/dev/nvidia[0-9]*", "/dev/nvhost-gpu"}

// deviceNodes are the nodes of cards.
func deviceNodes() []string {
	nodes := []string{}
	for _, p := range nodePatterns {
		found, _ := filepath.Glob(p) // the patterns are well formed
		nodes = append(nodes, found...)
	}
	return nodes
}

// nodesText says what the nodes mean where no card can be used.
func nodesText(nodes []string) string {
	if len(nodes) > 0 {
		return strings.Join(nodes, ", ") + ": a card is there; its driver's library is missing or does not fit (a container needs it from outside: --gpus all)"
	}
	return "no /dev/nvidia0: there is no NVIDIA card, its kernel driver is not loaded, or a container was not given it"
}

// Codes of the driver that say that there is no card to be seen.
const cudaNoDevice = 100

// cardThere reports whether err, of looking for cards, keeps one that is there
// from being used: whether it is worth a line where nobody asked for a card.
func cardThere(err error) bool {
	if os.Getenv(driver.LibraryEnv) != "" {
		return true // somebody wants that library
	}
	if _, hidden := os.LookupEnv("CUDA_VISIBLE_DEVICES"); hidden {
		var e *gpu.Error
		if errors.As(err, &e) && e.Code == cudaNoDevice {
			return false // and somebody wants no card
		}
	}
	return len(deviceNodes()) > 0
}
