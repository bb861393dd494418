package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/snarkline/snarkline/trace"
)

// peak is the moment at which items had most in a space, and what that was.
type peak struct {
	At     time.Duration
	Bytes  int64
	Shares []trace.Share // the largest first
}

// shareText is a share in words: "synthesize holds 3.1 GiB in 4 items".
func shareText(s trace.Share) string {
	in := ""
	if s.Items > 0 {
		in = " in " + count(s.Items, "item", "items")
	}
	switch s.State {
	case trace.Held:
		return fmt.Sprintf("%s holds %s%s", s.Stage, sizeText(s.Bytes), in)
	case trace.Queued:
		return fmt.Sprintf("%s%s wait before %s", sizeText(s.Bytes), in, s.Stage)
	case trace.Pending:
		return fmt.Sprintf("%s%s wait at %s for their partners or their turn", sizeText(s.Bytes), in, s.Stage)
	}
	return fmt.Sprintf("%s%s, made by %s, are kept besides", sizeText(s.Bytes), in, s.Stage)
}

// shown is how many shares a sentence names.
const shown = 4

// String is the peak in words: "at 12.4 s: synthesize holds 3.1 GiB in 4 items,
// 2.0 GiB in 2 items wait before ntt".
func (p peak) String() string {
	var parts []string
	rest := int64(0)
	for i, s := range p.Shares {
		if i < shown || len(p.Shares) == shown+1 {
			parts = append(parts, shareText(s))
			continue
		}
		rest += s.Bytes
	}
	if rest > 0 {
		parts = append(parts, sizeText(rest)+" elsewhere")
	}
	return "at " + spanText(p.At) + ": " + strings.Join(parts, ", ")
}
