package main

import (
	"fmt"
	"strings"
)

// print writes the routine as C++: for the GPU one asm block, for the emulator
// the same list over macros that carry explicitly.
func (r *routine) print(w *strings.Builder) {
	wide, lo, adds, other := r.counts()
	fmt.Fprintf(w, "// %s: %d wide multiply-adds, %d low products, %d additions, %d other\n", r.name, wide, lo, adds, other)
	ret := "void"
	if r.ret != "" {
		ret = "u32"
	}
	var sig []string
	for _, p := range append(append([]param{}, r.outs...), r.mods...) {
		sig = append(sig, "u32* "+p.name)
	}
	for _, p := range r.ins {
		sig = append(sig, "const u32* "+p.name)
	}
	fmt.Fprintf(w, "FP_FN %s %s(%s) {\n", ret, r.name, strings.Join(sig, ", "))
	w.WriteString("#ifdef SNARKLINE_EMULATOR\n")
	r.printC(w)
	w.WriteString("#else\n")
	r.printPTX(w)
	w.WriteString("#endif\n}\n")
}

func wrap(w *strings.Builder, items []string, indent, sep string) {
	line := indent
	for i, s := range items {
		if i < len(items)-1 {
			s += sep
		}
		if len(line)+len(s) > 150 && line != indent {
			w.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += s + " "
	}
	w.WriteString(strings.TrimRight(line, " ") + "\n")
}

// printC works on copies, so that results may be stored where inputs are.
func (r *routine) printC(w *strings.Builder) {
	var decl []string
	if r.n > 0 {
		for i := range r.n {
			decl = append(decl, fmt.Sprintf("t%d", i))
		}
		wrap(w, append([]string{"u32 " + decl[0]}, decl[1:]...), "  ", ",")
		w.WriteString("  ;\n")
	}
	for _, p := range r.outs {
		fmt.Fprintf(w, "  u32 o_%s[%d];\n", p.name, p.n)
	}
	w.WriteString("  u32 cc = 0; (void)cc;\n")
	name := func(s string) string {
		for _, p := range r.outs {
			if strings.HasPrefix(s, p.name+"[") {
				return "o_" + s
			}
		}
		return s
	}
	var lines []string
	for _, i := range r.code {
		f := "I_" + strings.ToUpper(strings.ReplaceAll(i.op, ".", "_"))
		var args []string
		for _, s := range []string{i.d, i.e, i.a, i.b, i.c} {
			if s != "" {
				args = append(args, name(s))
			}
		}
		lines = append(lines, f+"("+strings.Join(args, ",")+")")
	}
	wrap(w, lines, "  ", "")
	for _, p := range r.outs {
		fmt.Fprintf(w, "  for (int i = 0; i < %d; i++) %s[i] = o_%s[i];\n", p.n, p.name, p.name)
	}
	if r.ret != "" {
		fmt.Fprintf(w, "  return %s;\n", r.ret)
	}
}

func (r *routine) printPTX(w *strings.Builder) {
	num := map[string]int{}
	var outs, ins, store []string
	for _, p := range r.outs {
		// Results go through registers of their own: an input may be the same array.
		var d []string
		for i, e := range elems(p.name, p.n) {
			num[e] = len(num)
			d = append(d, fmt.Sprintf("o_%s%d", p.name, i))
			outs = append(outs, fmt.Sprintf(`"=&r"(o_%s%d)`, p.name, i))
			store = append(store, fmt.Sprintf("%s = o_%s%d;", e, p.name, i))
		}
		wrap(w, append([]string{"u32 " + d[0]}, d[1:]...), "  ", ",")
		w.WriteString("  ;\n")
	}
	if r.ret != "" {
		num[r.ret] = len(num)
		outs = append(outs, `"=&r"(ret)`)
		w.WriteString("  u32 ret;\n")
	}
	for _, p := range r.mods {
		for _, e := range elems(p.name, p.n) {
			num[e] = len(num)
			outs = append(outs, fmt.Sprintf(`"+&r"(%s)`, e))
		}
	}
	for _, p := range r.ins {
		for _, e := range elems(p.name, p.n) {
			num[e] = len(num)
			ins = append(ins, fmt.Sprintf(`"r"(%s)`, e))
		}
	}
	op := func(s string) string {
		if k, ok := num[s]; ok {
			return fmt.Sprintf("%%%d", k)
		}
		return s
	}
	var lines []string
	head := "{"
	if r.n > 0 {
		head += fmt.Sprintf(" .reg .u32 t<%d>;", r.n)
	}
	if r.uses("wide") {
		head += " .reg .u64 w;"
	}
	if r.uses("sel") {
		head += " .reg .pred p;"
	}
	lines = append(lines, head)
	pred := ""
	for _, i := range r.code {
		switch i.op {
		case "wide":
			lines = append(lines, fmt.Sprintf("mul.wide.u32 w,%s,%s;", op(i.a), op(i.b)), fmt.Sprintf("mov.b64 {%s,%s},w;", op(i.d), op(i.e)))
		case "sel":
			if i.c != pred {
				lines = append(lines, fmt.Sprintf("setp.ne.u32 p,%s,0;", op(i.c)))
				pred = i.c
			}
			lines = append(lines, fmt.Sprintf("selp.u32 %s,%s,%s,p;", op(i.d), op(i.a), op(i.b)))
		case "mov", "and":
			s := fmt.Sprintf("%s.b32 %s,%s", i.op, op(i.d), op(i.a))
			if i.b != "" {
				s += "," + op(i.b)
			}
			lines = append(lines, s+";")
		default:
			s := fmt.Sprintf("%s.u32 %s,%s,%s", i.op, op(i.d), op(i.a), op(i.b))
			if i.c != "" {
				s += "," + op(i.c)
			}
			lines = append(lines, s+";")
		}
	}
	lines = append(lines, "}")
	w.WriteString("  asm(\n")
	var b strings.Builder
	wrap(&b, lines, "", "")
	for _, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		fmt.Fprintf(w, "    \"%s \"\n", l)
	}
	w.WriteString("    :\n")
	wrap(w, outs, "    ", ",")
	w.WriteString("    :\n")
	if len(ins) > 0 {
		wrap(w, ins, "    ", ",")
	}
	w.WriteString("  );\n")
	if len(store) > 0 {
		wrap(w, store, "  ", "")
	}
	if r.ret != "" {
		w.WriteString("  return ret;\n")
	}
}

func (r *routine) uses(op string) bool {
	for _, i := range r.code {
		if i.op == op {
			return true
		}
	}
	return false
}
