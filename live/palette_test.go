package live_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/snarkline/snarkline/live"
)

// TestPaletteIsTheReports: a stage has the same colour in the live view as in the
// page that is drawn of the run later.
func TestPaletteIsTheReports(t *testing.T) {
	css, err := os.ReadFile("../report/assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(css), "@media (prefers-color-scheme:dark)")
	if !ok {
		t.Fatal("the style sheet has no dark part")
	}
	has := func(name string, hue live.Hue) {
		t.Helper()
		for text, want := range map[string]string{light: hue.Light, dark: hue.Dark} {
			if line := fmt.Sprintf("--%s:%s;", name, want); !strings.Contains(text, line) {
				t.Errorf("the report's style sheet does not say %s", line)
			}
		}
	}
	for i, hue := range live.Palette {
		has(fmt.Sprintf("c%d", i), hue)
	}
	has("held", live.Held)
	has("queued", live.Queued)
	has("pending", live.Pending)
	if strings.Contains(light, fmt.Sprintf("--c%d:", len(live.Palette))) {
		t.Errorf("the report has more than %d colours of stages", len(live.Palette))
	}
}
