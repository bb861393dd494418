package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/snarkline/snarkline/cmd/snarkline/internal/config"
	"github.com/snarkline/snarkline/pipeline"
)

// configFlag is --config: a settings file whose values stand in for flags that
// are not on the command line.
type configFlag struct {
	file     *config.File
	pipeline []config.Value // of tables [stages.NAME] and [budget]
}

// Decode takes the path; kong calls it.
func (c *configFlag) Decode(ctx *kong.DecodeContext) error {
	var path string
	if err := ctx.Scan.PopValueInto("file", &path); err != nil {
		return err
	}
	f, err := config.Load(path)
	if err != nil {
		return err
	}
	*c = configFlag{file: f}
	for _, v := range f.Values {
		if len(v.Key) == 3 && v.Key[0] == "stages" || len(v.Key) == 2 && v.Key[0] == "budget" {
			c.pipeline = append(c.pipeline, v)
		}
	}
	return nil
}

// BeforeResolve makes the file's values available to flags.
func (c configFlag) BeforeResolve(ctx *kong.Context, trace *kong.Path) error {
	flag, ok := ctx.FlagValue(trace.Flag).(configFlag)
	if !ok || flag.file == nil {
		return nil
	}
	ctx.AddResolver(&configResolver{file: flag.file})
	return nil
}

// configResolver answers kong's questions for flags from a settings file.
type configResolver struct{ file *config.File }

// Validate reports keys that are no flag of this command.
func (r *configResolver) Validate(model *kong.Application) error {
	for _, v := range r.file.Values {
		if err := r.check(model, v); err != nil {
			return err
		}
	}
	return nil
}

func (r *configResolver) check(model *kong.Application, v config.Value) error {
	table, key := v.Key[0], v.Key[len(v.Key)-1]
	node := model.Node
	switch {
	case table == "stages":
		if len(v.Key) != 3 {
			return r.file.Errorf(v, "%s: want a table [stages.NAME] with %s", strings.Join(v.Key, "."), strings.Join(knobs, ", "))
		}
		if err := setStage(&pipeline.Settings{}, v.Key[1], v.Key[2], fmt.Sprint(v.Data), false); err != nil {
			return r.file.Errorf(v, "%v", err)
		}
		return nil
	case table == "budget" && len(v.Key) == 2:
		if err := setStage(&pipeline.Settings{}, table, key, fmt.Sprint(v.Data), false); err != nil {
			return r.file.Errorf(v, "%v", err)
		}
		return nil
	case len(v.Key) > 2:
		return r.file.Errorf(v, "unknown key %q", strings.Join(v.Key, "."))
	case len(v.Key) == 2:
		i := slices.IndexFunc(model.Children, func(n *kong.Node) bool { return n.Name == table })
		if i < 0 {
			return r.file.Errorf(v, "there is no command %q%s", table, didYouMean(table, nodeNames(model.Children)))
		}
		node = model.Children[i]
	}
	flag := findFlag(node, key)
	if flag == nil {
		return r.file.Errorf(v, "unknown key %q%s", strings.Join(v.Key, "."), didYouMean(key, append(flagNames(node), "stages")))
	}
	return nil
}

// Resolve returns the file's value for flag, or nil.
func (r *configResolver) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	for _, v := range r.file.Values {
		if v.Key[len(v.Key)-1] != flag.Name {
			continue
		}
		node := parent.Node()
		global := len(v.Key) == 1 && node.Type == kong.ApplicationNode
		local := len(v.Key) == 2 && node.Type == kong.CommandNode && node.Name == v.Key[0]
		if !global && !local {
			continue
		}
		return r.value(flag, v)
	}
	return nil, nil
}

// value is v as kong takes it. It is tried out first, so that an error can name
// the line.
func (r *configResolver) value(flag *kong.Flag, v config.Value) (any, error) {
	var data any = fmt.Sprint(v.Data)
	if many, ok := v.Data.([]any); ok {
		data = many
	}
	trial := reflect.New(flag.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(data, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, trial); err != nil {
		return nil, r.file.Errorf(v, "%v", err)
	}
	if flag.Enum != "" && !flag.EnumMap()[fmt.Sprint(v.Data)] {
		return nil, r.file.Errorf(v, "must be one of %s", strings.TrimPrefix(flag.Enum, ","))
	}
	return data, nil
}

// findFlag is the flag of node called name, those that cannot be in a file left out.
func findFlag(node *kong.Node, name string) *kong.Flag {
	for _, f := range node.Flags {
		if f.Name == name && name != "config" && name != "help" {
			return f
		}
	}
	return nil
}

func flagNames(node *kong.Node) []string {
	var names []string
	for _, f := range node.Flags {
		names = append(names, f.Name)
	}
	return names
}

func nodeNames(nodes []*kong.Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}
