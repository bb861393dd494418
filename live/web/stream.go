package web

import (
	"encoding/json"
	"net/http"
	"time"
)

// snapshot answers with the state and its history as one document.
func (s *Server) snapshot(w http.ResponseWriter, _ *http.Request) {
	data, err := s.whole(false)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the viewer may have gone
}

// whole is the state with all of its history.
func (s *Server) whole(closed bool) ([]byte, error) {
	snap := s.state.Snapshot()
	points, first := s.state.History(0)
	return json.Marshal(update{snap, first, points, closed})
}

// stream sends the state as it changes, as server-sent events: "whole" with all
// of the history to begin with, and when points were missed; "state" with the
// points that are new.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.WriteHeader(http.StatusOK)
		return
	}
	if !s.hub.join(s.opt.Viewers) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	defer s.hub.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	c := client{w: w, rc: http.NewResponseController(w), patience: s.opt.Patience}
	var had *frame
	var seen uint64 // points that the viewer has
	whole := true
	for {
		f, next := s.hub.now()
		if f != nil && f != had {
			name, data := "state", f.data
			if whole || f.from > seen {
				var err error
				if data, err = s.whole(f.last); err != nil {
					return
				}
				name, whole = "whole", false
			}
			if !c.send(name, data) {
				return
			}
			had, seen = f, f.to
			if f.last {
				return
			}
			continue // what came meanwhile
		}
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
	}
}

// client is one viewer's connection.
type client struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
}

// send writes one event; it reports false if the viewer does not take it.
func (c *client) send(name string, data []byte) bool {
	if err := c.rc.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return false
	}
	for _, part := range [][]byte{[]byte("event: " + name + "\ndata: "), data, []byte("\n\n")} {
		if _, err := c.w.Write(part); err != nil {
			return false
		}
	}
	return c.rc.Flush() == nil
}
