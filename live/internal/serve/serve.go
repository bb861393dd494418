// Package serve is the HTTP server of what shows a run: read-only, bound to one
// address, deaf to pages of other sites.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sendBuffer is what the system keeps for a reader, in bytes.
const sendBuffer = 64 << 10

// Server serves a handler to GET requests that mean this server.
type Server struct {
	listener net.Listener
	http     *http.Server
	any      bool   // names are not checked
	name     string // host of the address that was asked for
	closing  chan struct{}
	once     sync.Once
	done     chan struct{}
	err      error // of Serve; read after done
}

// Listen binds addr ("127.0.0.1:0") and serves h there until Close. Errors name
// the address.
func Listen(addr string, h http.Handler) (*Server, error) { return listen(addr, h, false) }

// ListenAny is Listen for programs as clients, which call a server by any name
// that their network has for it; on a loopback address names are checked all the
// same.
func ListenAny(addr string, h http.Handler) (*Server, error) { return listen(addr, h, true) }

func listen(addr string, h http.Handler, any bool) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("the address %q: want HOST:PORT, such as 127.0.0.1:0", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // the address stands before it
		}
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		any = false
	}
	s := &Server{any: any, listener: l, name: strings.ToLower(host), closing: make(chan struct{}), done: make(chan struct{})}
	s.http = &http.Server{
		Handler:           s.guard(h),
		ReadHeaderTimeout: 5 * time.Second, // no timeout of the body: it would end streams
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if c, ok := c.(*net.TCPConn); ok {
				// What a slow reader has not taken lies here, and grows old.
				_ = c.SetWriteBuffer(sendBuffer) // a large one serves too
			}
			return ctx
		},
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
		}
	}()
	return s, nil
}

// Addr is where the server listens, with the port that it was given.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL is the address to open.
func (s *Server) URL() string {
	at, ok := s.Addr().(*net.TCPAddr)
	if !ok {
		return "http://" + s.Addr().String() + "/"
	}
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(at.Port)) + "/"
}

// Closing is closed when Close begins: handlers that would go on for ever end.
func (s *Server) Closing() <-chan struct{} { return s.closing }

// Close lets the handlers at work finish, until ctx ends; then it cuts them off.
func (s *Server) Close(ctx context.Context) error {
	s.once.Do(func() { close(s.closing) })
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return errors.Join(err, s.err)
}

// guard refuses what is not read-only, and requests that a page of another site
// made the browser send by giving its own name this server's address.
func (s *Server) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cache-Control", "no-store")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "read-only: GET alone", http.StatusMethodNotAllowed)
			return
		}
		if !s.any && !s.own(r) {
			http.Error(w, "this server goes by another name", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// own reports whether the request names this server: by the host that it was
// told to listen on, by the address on which the connection came, or as
// localhost. Ports do not matter: they change when they are forwarded.
func (s *Server) own(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "" {
		return false
	}
	if host == "localhost" || host == s.name {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip.IsLoopback() || local != nil && ip.Equal(local.IP)
}
