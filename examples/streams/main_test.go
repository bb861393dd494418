package main

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var out strings.Builder
	if err := run(context.Background(), &out, strings.NewReader("2\n3\nfour\n5\n")); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	for _, want := range []string{"proof root/2: I know a square root of 4", "proof root/5", "element 2 is no job"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
}
