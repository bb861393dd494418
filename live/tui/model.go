package tui

import (
	"sync/atomic"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/snarkline/snarkline/live"
)

// refresh is how often the view asks for the state.
const refresh = 250 * time.Millisecond

// Model is the view as Bubble Tea's model, for programs that have one of their
// own. Start makes a program of it.
type Model struct {
	state  *live.State
	stop   func(again bool)
	snap   *live.Snapshot
	points []live.Point

	width, height int
	told          *atomic.Int64 // the width, for who writes above the view
	light         bool          // the terminal's ground
	stopping      bool
	ended         bool

	keys keys
	help help.Model
}

type keys struct{ stop, suspend key.Binding }

// ShortHelp is for package help.
func (k keys) ShortHelp() []key.Binding { return []key.Binding{k.stop} }

// FullHelp is for package help.
func (k keys) FullHelp() [][]key.Binding { return [][]key.Binding{k.ShortHelp()} }

// NewModel shows the state. stop is called when the reader wants the run to end,
// and with again when he has wanted it before; nil: there are no keys.
func NewModel(state *live.State, stop func(again bool)) Model {
	m := Model{state: state, stop: stop, width: 80, height: 24, told: new(atomic.Int64), help: help.New()}
	m.keys.stop = key.NewBinding(key.WithKeys("q", "ctrl+c"), key.WithHelp("q", "stop the run"))
	m.keys.suspend = key.NewBinding(key.WithKeys("ctrl+z"))
	m.look()
	return m
}

type tickMsg struct{}

// endMsg says that the run has ended and the state says so.
type endMsg struct{}

func tick() tea.Cmd { return tea.Tick(refresh, func(time.Time) tea.Msg { return tickMsg{} }) }

// Init is for Bubble Tea.
func (m Model) Init() tea.Cmd { return tea.Batch(tick(), tea.RequestBackgroundColor) }

// look takes the newest state.
func (m *Model) look() {
	m.snap = m.state.Snapshot()
	// As many points as the widest sparkline could show.
	from := uint64(0)
	if n := uint64(maxSpark); m.snap.Points > n {
		from = m.snap.Points - n
	}
	m.points, _ = m.state.History(from)
}

// Update is for Bubble Tea.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.told.Store(int64(msg.Width))
	case tea.BackgroundColorMsg:
		m.light = !msg.IsDark()
	case tea.KeyPressMsg:
		return m.press(msg)
	case tickMsg:
		m.look()
		return m, tick()
	case endMsg:
		m.look()
		m.ended = true
		return m, tea.Quit
	}
	return m, nil
}

func (m Model) press(msg tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch {
	case key.Matches(msg, m.keys.suspend):
		return m, tea.Suspend
	case key.Matches(msg, m.keys.stop) && m.stop != nil:
		again, stop := m.stopping, m.stop
		m.stopping = true
		m.keys.stop.SetHelp("q", "quit at once")
		return m, func() tea.Msg {
			stop(again)
			return nil
		}
	}
	return m, nil
}

// View is for Bubble Tea.
func (m Model) View() tea.View {
	text := m.text()
	if m.ended {
		text += "\n" // Bubble Tea clears the last line when it ends
	}
	return tea.NewView(text)
}
