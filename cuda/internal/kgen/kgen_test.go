package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kernelsDir = "../../kernels"

// TestCommittedPTXBelongsToTheSources needs no compiler: it fails when a
// source changed after its PTX was made.
func TestCommittedPTXBelongsToTheSources(t *testing.T) {
	names, err := families(kernelsDir, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		if err := verifySums(kernelsDir, f); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if !exists(wrapperPath(kernelsDir, f)) {
			t.Errorf("%s has no wrapper", f)
		}
	}
	sums, err := filepath.Glob(filepath.Join(kernelsDir, "ptx", "*.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sums {
		f := strings.TrimSuffix(filepath.Base(s), ".sum")
		if !exists(filepath.Join(kernelsDir, f+".cu")) {
			t.Errorf("%s is left of a family that is gone", s)
		}
	}
}

// need is a compiler, or the end of the test.
func need(t *testing.T) compiler {
	t.Helper()
	cc, err := findCompiler()
	if err != nil {
		if os.Getenv("SNARKLINE_NEED_CLANG") == "1" {
			t.Fatal(err)
		}
		t.Skipf("NOT TESTED: %v", err)
	}
	return cc
}

const tinySource = `#include "rt.cuh"
namespace CURVE_NS {
struct Pair { u32 a[CURVE == 381 ? 3 : 2]; };
#define COPY(n) KERNEL(n)(const u32* __restrict__ in, u32* out, /* of both */ u64 len, \
  Pair type) { out[threadIdx.x] = in[len] + type.a[1]; } EXPORT(n)
COPY(copy_it)
KERNEL_BOUNDS(clear_all, 128, 2)(u32* k,
    u32 n) {
  if (threadIdx.x < n) k[threadIdx.x] = 0;
}
EXPORT(clear_all)
}
`

// folder has the runtime headers and one family.
func folder(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for _, h := range []string{"rt.cuh", "rt_cuda.cuh"} {
		data, err := os.ReadFile(filepath.Join(kernelsDir, h))
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, h), string(data))
	}
	put(t, filepath.Join(dir, "tiny.cu"), source)
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func kgen(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, warn bytes.Buffer
	err := run(args, &out, &warn)
	return out.String() + warn.String(), err
}

func TestGenerateVerifyCheck(t *testing.T) {
	need(t)
	dir := folder(t, tinySource)
	if err := verifySums(dir, "tiny"); err == nil {
		t.Error("a family that was never generated passes")
	}
	said, err := kgen(t, "-dir", dir)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "tiny_bn254.ptx.gz") {
		t.Errorf("says %q", said)
	}
	for _, mode := range []string{"-verify", "-check"} {
		if said, err := kgen(t, mode, "-dir", dir); err != nil || said != "" {
			t.Errorf("%s after generating: %q, %v", mode, said, err)
		}
	}
	if said, err := kgen(t, "-dir", dir); err != nil || said != "" {
		t.Errorf("a second time: %q, %v", said, err)
	}
	wrapper := wrapperPath(dir, "tiny")
	text, err := os.ReadFile(wrapper)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"func (k *TinyKernels) CopyIt(stream gpu.Stream, shape gpu.Launch, args *gpu.Args, in gpu.Ptr, out gpu.Ptr, len uint64, type_ *[3]uint32) error",
		"func (k *TinyKernels) ClearAll(stream gpu.Stream, shape gpu.Launch, args *gpu.Args, k_ gpu.Ptr, n uint32) error",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the wrapper lacks %q:\n%s", want, text)
		}
	}

	// the same from another folder: no path in the PTX
	other := folder(t, tinySource)
	if _, err := kgen(t, "-dir", other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ptx/tiny_bls12381.ptx.gz", "ptx/tiny_bn254.ptx.gz", "ptx/tiny.sum", "tiny_wrapper.go"} {
		a, errA := os.ReadFile(filepath.Join(dir, name))
		b, errB := os.ReadFile(filepath.Join(other, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s depends on the folder (%v, %v)", name, errA, errB)
		}
		if plain, err := unpack(a); err == nil && bytes.Contains(plain, []byte(dir)) {
			t.Errorf("%s names the folder", name)
		}
	}

	put(t, wrapper, string(text)+"\n// changed\n")
	if _, err := kgen(t, "-check", "-dir", dir); err == nil || !strings.Contains(err.Error(), "tiny_wrapper.go") {
		t.Errorf("a changed wrapper: %v", err)
	}
	put(t, wrapper, string(text))

	header, err := os.ReadFile(filepath.Join(dir, "rt.cuh"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "rt.cuh"), string(header)+"\n// changed\n")
	if err := verifySums(dir, "tiny"); err == nil || !strings.Contains(err.Error(), "rt.cuh has changed") {
		t.Errorf("a changed header: %v", err)
	}
	put(t, filepath.Join(dir, "rt.cuh"), string(header))

	packed, err := pack([]byte("// other PTX\n"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, ptxPath(dir, "tiny", targets[1]), string(packed))
	if err := verifySums(dir, "tiny"); err == nil || !strings.Contains(err.Error(), "tiny_bn254.ptx.gz has changed") {
		t.Errorf("changed PTX: %v", err)
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	need(t)
	for name, c := range map[string]struct{ source, want string }{
		"syntax":    {strings.Replace(tinySource, "k[threadIdx.x] = 0;", "k[threadIdx.x] = ;", 1), "tiny.cu:9:"},
		"type":      {strings.Replace(tinySource, "u32 n) {", "int n) {", 1), "tiny.cu:7: kernel clear_all: parameter \"int n\": take u32 or u64"},
		"reference": {strings.Replace(tinySource, "Pair type", "const Pair& type", 1), "tiny.cu:6: kernel copy_it: parameter \"Pair& type\" is a reference"},
		"unnamed":   {strings.Replace(tinySource, "u32* k,", "u32*,", 1), ""},
		"curves": {strings.Replace(tinySource, "COPY(copy_it)", "#if CURVE == 381\nCOPY(copy_it)\n#endif", 1),
			"tiny.cu: 2 kernels for bls12381, 1 for bn254"},
	} {
		dir := folder(t, c.source)
		_, err := kgen(t, "-dir", dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if exists(sumPath(dir, "tiny")) {
			t.Errorf("%s: sums were written", name)
		}
	}
}

func TestAHalfWrittenFamilyIsNoHindrance(t *testing.T) {
	need(t)
	dir := folder(t, tinySource)
	put(t, filepath.Join(dir, "half.cu"), "#include \"rt.cuh\"\nnamespace CURVE_NS { KERNEL(half)(u32* a\n")
	if _, err := kgen(t, "-dir", dir, "-families", "tiny"); err != nil {
		t.Error(err)
	}
	_, err := kgen(t, "-dir", dir, "-force")
	if err == nil || !strings.Contains(err.Error(), "half.cu:") || strings.Contains(err.Error(), "tiny") {
		t.Errorf("all of them: %v", err)
	}
	if err := verifySums(dir, "tiny"); err != nil {
		t.Error(err)
	}
	if _, err := kgen(t, "-dir", dir, "-families", "none"); err == nil {
		t.Error("a family that is not there")
	}
}

func TestWithoutACompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CLANG", "")
	dir := folder(t, tinySource)
	t.Setenv("SNARKLINE_NEED_CLANG", "")
	if said, err := kgen(t, "-check", "-dir", dir); err != nil || !strings.Contains(said, "NOT CHECKED") {
		t.Errorf("a check: %q, %v", said, err)
	}
	t.Setenv("SNARKLINE_NEED_CLANG", "1")
	if _, err := kgen(t, "-check", "-dir", dir); err == nil {
		t.Error("a check that is needed passes without a compiler")
	}
	if _, err := kgen(t, "-dir", dir); err == nil || !strings.Contains(err.Error(), "no clang of version 19") {
		t.Errorf("generating: %v", err)
	}
}

func TestReadKernels(t *testing.T) {
	head := "# 1 \"./a.cu\"\n\n\n"
	kernel := `extern "C" __attribute__((global)) `
	for name, c := range map[string]struct{ text, want string }{
		"none":     {head + "int x;", ""},
		"void":     {head + kernel + "void f_bn254(void) {}", ""},
		"template": {head + kernel + "void f_bn254(Two<u32, u32> x, u64 y) {}", ""},
		"form":     {head + kernel + "u32 f_bn254(u32 x) {}", "a.cu:3: a kernel is not of the form"},
		"name":     {head + kernel + "void f(u32 x) {}", "a.cu:3: kernel f is not named by KERNEL"},
		"open":     {head + kernel + "void f_bn254(u32 x", "a.cu:3: the parameters of kernel f do not end"},
		"unnamed":  {head + kernel + "void f_bn254(u32*) {}", "has no name"},
		"bool":     {head + kernel + "void f_bn254(bool b) {}", "take u32 or u64"},
	} {
		_, err := readKernels(c.text, "bn254")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ks, err := readKernels(head+kernel+"void f_bn254(Two<u32, u32> x, const u64* __restrict__ y) {}", "bn254")
	if err != nil || len(ks) != 1 || len(ks[0].params) != 2 || ks[0].params[0].kind != block || ks[0].params[1].kind != pointer {
		t.Errorf("%+v, %v", ks, err)
	}
	ptx := ".visible .entry f_bn254(\n\t.param .align 4 .b8 f_bn254_param_0[6],\n\t.param .u64 f_bn254_param_1\n)\n"
	if err := takeSizes(ks, ptx, "bn254"); err == nil || !strings.Contains(err.Error(), "not made of words") {
		t.Errorf("a struct of 6 bytes: %v", err)
	}
	if err := takeSizes(ks, strings.Replace(ptx, "[6]", "[8]", 1), "bn254"); err != nil || ks[0].params[0].words != 2 {
		t.Errorf("%+v, %v", ks, err)
	}
	if err := takeSizes(ks, strings.Replace(ptx, ".u64 f", ".u32 f", 1), "bn254"); err == nil {
		t.Error("a pointer of 32 bits passes")
	}
}
