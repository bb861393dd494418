package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/progress"
	"github.com/snarkline/snarkline/pipeline"
)

// app is what one invocation of the command works with. The result goes to
// stdout and nothing else does; messages go to stderr.
type app struct {
	ctx    context.Context
	stdin  io.Reader
	stdout *relay
	stderr *relay
	flags  *globals

	workload []string // what stands behind -- for sweep and tune

	terminal  bool // stderr is a terminal
	terminals bool // both are

	answered   bool // a result has been printed
	unwritable bool // a file that was asked for cannot be written, which has been said
}

// exitTrap carries the code with which kong wants to leave (after --help).
type exitTrap int

// run is the command without its process: it parses args, does the work and
// returns the exit code. Cancelling ctx is what Ctrl-C does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	var c cli
	a := &app{ctx: ctx, stdin: stdin, stdout: &relay{to: stdout}, stderr: &relay{to: stderr}, flags: &c.globals}
	a.terminals = progress.IsTerminal(stdout) && progress.IsTerminal(stderr)
	a.terminal = progress.IsTerminal(stderr)
	told := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(told)
		if errors.Is(context.Cause(ctx), errInterrupted) {
			a.messagef("%s", interruptedText)
		}
	})
	defer func() {
		if !unhook() {
			<-told // nothing is written after run has returned
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			if trap, ok := r.(exitTrap); ok {
				code = int(trap)
				return
			}
			// The last line of defence: a script gets a code and a line, not a crash.
			code = a.fail(fmt.Errorf("internal error: %v", r))
			if c.Debug {
				_, _ = stderr.Write(debug.Stack())
			}
		}
	}()
	parser, err := newParser(&c, stdout, stderr)
	if err != nil {
		return a.fail(err)
	}
	args, a.workload = cutWorkload(args)
	kctx, err := parser.Parse(plain(args))
	if err != nil {
		a.flags.JSON = a.flags.JSON || asksJSON(args) // parsing may have ended before it
		return a.fail(err)
	}
	if err := a.run(kctx); err != nil {
		return a.fail(err)
	}
	return codeOK
}

// plain puts the usual ways to ask for help and for the version in terms of the
// grammar.
func plain(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// asksJSON reports whether --json is among arguments that could not be parsed.
func asksJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// run runs the command that was parsed, within what the global flags ask for.
func (a *app) run(kctx *kong.Context) error {
	if n := a.flags.Workers; n != 0 {
		if n < 0 {
			return usagef("--workers %d: there must be one at least", n)
		}
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	}
	// What is large lies outside Go's heap: a low target costs little there.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	if err := a.unheard(kctx); err != nil {
		return err
	}
	stop, err := a.measure()
	if err != nil {
		return err
	}
	err = kctx.Run(a)
	if err != nil && a.ctx.Err() != nil {
		// What the end of the work looked like to it is not why it ended.
		err = &endedError{context.Cause(a.ctx), err}
	}
	var told *toldError // of an item, by when there is something to measure
	return errors.Join(err, stop(a.unwritable || exitCode(err) == codeUsage && !errors.As(err, &told)))
}

// unheard is the error of a flag on the command line that asks for a file which
// the command would not write. One in a settings file is for other commands.
func (a *app) unheard(kctx *kong.Context) error {
	command, _, _ := strings.Cut(kctx.Command(), " ")
	if a.flags.Report == "" || command == "prove" || command == "demo" {
		return nil
	}
	for _, p := range kctx.Path {
		if p.Flag != nil && p.Flag.Name == "report" && !p.Resolved {
			return usagef("--report: prove and demo write it, %s would not", command)
		}
	}
	return nil
}

// gcPercent is the collector's target. Of 25, 50, 100 and 200 it gives the
// lowest peak of resident memory in the demonstration and on a .zkey, for about
// 1% of the processor's time.
const gcPercent = 50

func newParser(c *cli, stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("snarkline"),
		kong.Description(appHelp+"\n\n"+exitCodeHelp),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exitTrap(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppDescFormat: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "pipeline", Title: "Pipeline:"},
			{Key: "device", Title: "Devices:"},
			{Key: "output", Title: "Output:"},
			{Key: "measure", Title: "Measuring:"},
		}),
		kong.Vars{"stages": stageNamesHelp()},
	)
}

// fail reports err and returns its exit code.
func (a *app) fail(err error) int {
	code := exitCode(err)
	var told *toldError
	if !errors.As(err, &told) {
		a.messagef("%s", errorText(err))
		if code == codeUsage {
			a.messagef("`snarkline --help` and `snarkline COMMAND --help` say more")
		}
		if a.flags.Debug {
			a.debugError(err)
		}
	}
	if a.flags.JSON && !a.answered {
		_ = a.result(failure{Code: code, Error: errorText(err)}, nil)
	}
	return code
}

// failure is what stdout says under --json when a command has no other result.
type failure struct {
	OK    bool   `json:"ok"`
	Code  int    `json:"code"`
	Error string `json:"error"`
}

// endedError is what went wrong in work whose context had ended.
type endedError struct{ cause, err error }

func (e *endedError) Error() string   { return e.cause.Error() + ": " + e.err.Error() }
func (e *endedError) Unwrap() []error { return []error{e.cause, e.err} }

// toldError is an error of which the user has read already, item by item.
type toldError struct{ err error }

func (e *toldError) Error() string { return e.err.Error() }
func (e *toldError) Unwrap() error { return e.err }

// errorText is err as one user-facing text.
func errorText(err error) string {
	if errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return err.Error()
}

// debugError prints the chain of err, outermost first, with types.
func (a *app) debugError(err error) {
	for depth := 0; err != nil; depth++ {
		_, _ = fmt.Fprintf(a.stderr, "  [%d] %T: %v\n", depth, err, err)
		if s, ok := err.(*pipeline.StageError); ok && len(s.Stack) > 0 { //nolint:errorlint // this link of the chain
			_, _ = a.stderr.Write(s.Stack)
		}
		err = errors.Unwrap(err)
	}
}

// messagef writes a line for the reader to stderr.
func (a *app) messagef(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, "snarkline: "+format+"\n", args...)
}

// notef is messagef unless --quiet.
func (a *app) notef(format string, args ...any) {
	if !a.flags.Quiet {
		a.messagef(format, args...)
	}
}

// result prints the command's result: v as JSON under --json, else what text writes.
func (a *app) result(v any, text func(w io.Writer) error) error {
	a.answered = true
	if a.flags.JSON {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		return nil
	}
	if text == nil {
		return nil
	}
	if err := text(a.stdout); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}
