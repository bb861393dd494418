package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/live/internal/synth"
	"github.com/snarkline/snarkline/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// midway is the state of a run in its middle; end lets it end.
func midway(t *testing.T) (state *live.State, end func()) {
	t.Helper()
	state = live.New(live.Options{Total: 400, Interval: 10 * time.Millisecond,
		NameOf: func(k pipeline.Key) string { return fmt.Sprintf("witnesses/batch-%03d.wtns", k.Part) }})
	g := synth.Graph(synth.Options{Items: 400, Step: 5 * time.Millisecond, Bytes: 8 << 20, Budget: 150 << 20, FailAt: 3,
		Options: []pipeline.Option{pipeline.Listen(state)}})
	state.Watch(g)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := g.Run(ctx)
		state.End(r, err)
	})
	end = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(end)
	for state.Snapshot().Done < 10 {
		time.Sleep(5 * time.Millisecond)
	}
	return state, end
}

func update(t *testing.T, m Model, msg tea.Msg) (Model, tea.Cmd) {
	t.Helper()
	next, cmd := m.Update(msg)
	out, ok := next.(Model)
	if !ok {
		t.Fatalf("Update gives a %T", next)
	}
	return out, cmd
}

func TestSizes(t *testing.T) {
	state, end := midway(t)
	m := NewModel(state, func(bool) {})
	for _, size := range [][2]int{{80, 24}, {60, 24}, {60, 15}, {120, 40}, {200, 60}, {40, 10}, {20, 5}} {
		m, _ = update(t, m, tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		m, _ = update(t, m, tickMsg{})
		text := m.View().Content
		lines := strings.Split(text, "\n")
		if len(lines) > size[1]-1 {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if w := lipgloss.Width(line); w > size[0] && size[0] >= 40 {
				t.Errorf("%v: a line of %d cells: %q", size, w, line)
			}
		}
		if size[0] < 60 || size[1] < 24 {
			continue
		}
		for _, want := range []string{"of 400 done", "1 failed", "synthesize", "h-msm", "assemble", "pending", "host", "of 150 MiB", "reserved", "stop the run"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: %q is not shown in\n%s", size, want, text)
			}
		}
		if size[0] == 80 && !strings.Contains(text, "batch-0") {
			t.Errorf("%v: no latest event is shown", size)
		}
	}
	end()
	m, _ = update(t, m, tea.WindowSizeMsg{Width: 80, Height: 24})
	m, cmd := update(t, m, endMsg{})
	if cmd == nil || fmt.Sprintf("%T", cmd()) != "tea.QuitMsg" {
		t.Error("the view does not end with the run")
	}
	if text := m.View().Content; !strings.Contains(text, "ended") || strings.Contains(text, "stop the run") || !strings.Contains(text, "h-msm") {
		t.Errorf("at the end\n%s", text)
	}
}

func TestBeforeTheRun(t *testing.T) {
	m := NewModel(live.New(live.Options{}), nil)
	text := m.View().Content
	for _, want := range []string{"waiting", "preparing", "host", "Ctrl-C"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown in\n%s", want, text)
		}
	}
}

func TestKeys(t *testing.T) {
	var asked []bool
	m := NewModel(live.New(live.Options{}), func(again bool) { asked = append(asked, again) })
	m, cmd := update(t, m, tea.KeyPressMsg{Code: 'x', Text: "x"})
	if cmd != nil {
		t.Error("x does something")
	}
	m, cmd = update(t, m, tea.KeyPressMsg{Code: 'q', Text: "q"})
	cmd()
	if !strings.Contains(m.View().Content, "stopping") && !strings.Contains(m.View().Content, "quits at once") {
		t.Errorf("after q\n%s", m.View().Content)
	}
	_, cmd = update(t, m, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	cmd()
	if fmt.Sprint(asked) != "[false true]" {
		t.Errorf("asked to stop: %v", asked)
	}
}

// TestEscapesInNames: what a file is called does not reach the terminal as
// anything but text.
func TestEscapesInNames(t *testing.T) {
	state := live.New(live.Options{NameOf: func(pipeline.Key) string { return "a\x1b]0;evil\x07\x1b[2J\u009b31m\nb" }})
	state.OnEvent(pipeline.Event{Kind: pipeline.Failed, Stage: "ntt", Err: errors.New("no\x1b[31mgood\r")})
	m := NewModel(state, nil)
	text := m.View().Content
	if !strings.Contains(text, "evil") {
		t.Fatalf("the event is not shown in %q", text)
	}
	for _, bad := range []string{"\x1b]", "\x07", "\x1b[2J", "\u009b", "\r"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q reaches the terminal", bad)
		}
	}
}

func TestBarAndSpark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.IntRange(1, 80).Draw(t, "w")
		share := rapid.Float64Range(-1, 2).Draw(t, "share")
		full, empty := bar(share, w)
		if n := lipgloss.Width(full + empty); n != w {
			t.Fatalf("a bar of %d cells is %d wide", w, n)
		}
		if share <= 0 && full != "" || share >= 1 && empty != "" || share > 0 && full == "" {
			t.Fatalf("%v of %d: %q %q", share, w, full, empty)
		}
		values := rapid.SliceOfN(rapid.Int64Range(0, 100), 0, 100).Draw(t, "values")
		if n := lipgloss.Width(spark(values, 100, w)); n != w {
			t.Fatalf("a sparkline of %d cells is %d wide", w, n)
		}
		text := rapid.StringOf(rapid.SampledFrom([]rune("aZ –é世界🙂\t\x1b\u0600…"))).Draw(t, "text")
		if n := lipgloss.Width(left(text, w)); n != w {
			t.Fatalf("%q in %d cells is %d wide", text, w, n)
		}
	})
}

// colour is a colour of letters, and not a move of 38 places.
var colour = regexp.MustCompile("\x1b\\[[0-9;]*38;[0-9;]*m")

// safe is a buffer for several goroutines.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestProgram: the view as a program: every line that is written through it comes
// out once, in order, also one that comes after the end; NO_COLOR leaves no
// colours; the last state stays.
func TestProgram(t *testing.T) {
	for _, noColor := range []bool{false, true} {
		state, end := midway(t)
		out := &safe{}
		env := []string{"TERM=xterm-256color", "TTY_FORCE=1"}
		if noColor {
			env = append(env, "NO_COLOR=please")
		}
		v := Start(state, Options{Out: out, Env: env, Size: [2]int{80, 24}})
		for i := range 30 {
			if _, err := fmt.Fprintf(v, "line %d.\nhalf ", i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(100 * time.Millisecond)
		end()
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(v, "after"); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		at := 0
		for i := range 30 {
			n := strings.Index(text[at:], fmt.Sprintf("line %d.", i))
			if n < 0 {
				t.Fatalf("line %d is lost, or out of order", i)
			}
			at += n
		}
		if !strings.Contains(text, "ended early") || !strings.Contains(text, "h-msm") {
			t.Error("the last state is not left on the screen")
		}
		if !strings.HasSuffix(text, "half after") {
			t.Errorf("what had no end of line is lost: %q", text[max(len(text)-100, 0):])
		}
		if coloured := colour.MatchString(text); coloured == noColor {
			t.Errorf("NO_COLOR %v: colours %v in %q", noColor, coloured, text[:min(len(text), 2000)])
		}
	}
}

func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.IntRange(8, 40).Draw(t, "w")
		text := rapid.StringOf(rapid.SampledFrom([]rune("aZ –é世界🙂"))).Draw(t, "text")
		got := pieces(text, w)
		for _, p := range got {
			if lipgloss.Width(p) > w || p == "" {
				t.Fatalf("%q in pieces of %d: %q", text, w, got)
			}
		}
		if joined := strings.Join(got, ""); joined != text && text != "" {
			t.Fatalf("%q becomes %q", text, joined)
		}
	})
}

// TestBrokenTerminal: when the terminal goes away the view says so at the end,
// and nothing waits for it.
func TestBrokenTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	_ = r.Close()
	v := Start(live.New(live.Options{}), Options{Out: w, Env: []string{"TERM=xterm"}})
	if _, err := io.WriteString(v, "a line\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	_ = v.Close() // with an error or not: it ends
}

// TestWriteWhileItEnds: who prints is not kept waiting by a program that ends in
// that moment.
func TestWriteWhileItEnds(t *testing.T) {
	for range 20 {
		v := Start(live.New(live.Options{}), Options{Out: io.Discard, Env: []string{"TERM=xterm"}, Size: [2]int{80, 24}})
		written := make(chan struct{})
		go func() {
			defer close(written)
			for i := range 200 {
				_, _ = fmt.Fprintf(v, "line %d\n", i)
			}
		}()
		v.program.Quit()
		select {
		case <-written:
		case <-time.After(10 * time.Second):
			t.Fatal("a line is waiting for ever")
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}
