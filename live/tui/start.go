package tui

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/snarkline/snarkline/live"
)

// Options are the options of Start.
type Options struct {
	In   io.Reader        // a terminal for the keys; nil: none, and the terminal is left in its mode
	Out  io.Writer        // the terminal
	Env  []string         // for TERM, NO_COLOR and the like; nil: the process's
	Size [2]int           // width and height of an Out that does not tell; zero: ask it
	Stop func(again bool) // called when the reader wants the run to end; again: for the second time
}

// View is a view at work.
type View struct {
	out     io.Writer
	program *tea.Program
	width   *atomic.Int64 // of the terminal
	done    chan struct{}
	err     error

	mu     sync.Mutex
	part   bytes.Buffer // of a line
	ended  bool
	behind bytes.Buffer // lines that came too late for the program
	gone   bool         // and went out after it: what comes now goes straight there
}

// Start shows the state until Close. What is printed to the terminal meanwhile
// must go through the View, which writes it above itself.
func Start(state *live.State, o Options) *View {
	stop := o.Stop
	if o.In == nil {
		stop = nil
	}
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	env = plainEnv(env)
	opts := []tea.ProgramOption{tea.WithOutput(o.Out), tea.WithInput(o.In), tea.WithEnvironment(env), tea.WithoutSignalHandler(), tea.WithFPS(20)}
	if o.Size != [2]int{} {
		opts = append(opts, tea.WithWindowSize(o.Size[0], o.Size[1]))
	}
	m := NewModel(state, stop)
	m.told.Store(int64(m.width))
	v := &View{out: o.Out, width: m.told, program: tea.NewProgram(m, opts...), done: make(chan struct{})}
	go func() {
		defer close(v.done)
		_, v.err = v.program.Run()
	}()
	return v
}

// plainEnv makes any value of NO_COLOR one that the libraries below know: by its
// convention what counts is that it is not empty.
func plainEnv(env []string) []string {
	out := make([]string, len(env))
	for i, kv := range env {
		if value, ok := strings.CutPrefix(kv, "NO_COLOR="); ok && value != "" {
			kv = "NO_COLOR=1"
		}
		out[i] = kv
	}
	return out
}

// Write prints whole lines above the view, and after Close anything. It may be called from any goroutine.
func (v *View) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gone {
		return v.out.Write(p)
	}
	v.part.Write(p)
	at := bytes.LastIndexByte(v.part.Bytes(), '\n')
	if at < 0 {
		return len(p), nil
	}
	text := string(v.part.Next(at + 1))
	if v.ended || v.over() {
		v.behind.WriteString(text)
		return len(p), nil
	}
	for line := range strings.Lines(text) {
		for _, piece := range pieces(strings.TrimRight(line, "\r\n"), int(v.width.Load())-1) {
			// Unlike the program's Println, Send does not wait for one that has
			// ended meanwhile.
			v.program.Send(tea.Println(piece)())
		}
	}
	return len(p), nil
}

// pieces cuts a line into what fits into w cells each: the program inserts one
// row at a time above a view that may fill the rest of the screen.
func pieces(line string, w int) (out []string) {
	w = max(w, 8)
	for lipgloss.Width(line) > w {
		end := 0
		for i := range line {
			if lipgloss.Width(line[:i]) > w {
				break
			}
			end = i
		}
		if end == 0 {
			break // one letter of many cells
		}
		out, line = append(out, line[:end]), line[end:]
	}
	if line == "" && out == nil {
		line = " " // the program leaves out what is empty
	}
	return append(out, line)
}

// over reports whether the program has ended by itself.
func (v *View) over() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// Close draws the last state, leaves it on the screen, and gives the terminal
// back. The error is of the terminal.
func (v *View) Close() error {
	v.mu.Lock()
	first := !v.ended
	v.ended = true
	v.mu.Unlock()
	if !first {
		return nil
	}
	v.program.Send(endMsg{})
	<-v.done
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone = true
	v.behind.Write(v.part.Bytes())
	if _, err := v.out.Write(v.behind.Bytes()); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	if v.err != nil {
		return fmt.Errorf("show the run in the terminal: %w", v.err)
	}
	return nil
}

// Release gives the terminal back at once, before the process ends without
// Close.
func (v *View) Release() {
	v.program.Kill()
	<-v.done
}
