package main

import (
	"context"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for _, curve := range []string{"bn128", "bls12381"} {
		t.Run(curve, func(t *testing.T) {
			var out strings.Builder
			if err := run(context.Background(), &out, "../../formats/circom/testdata/"+curve); err != nil {
				t.Fatal(err)
			}
			t.Log("\n" + out.String())
			for _, want := range []string{curve, `"protocol": "groth16"`, `"300"`, "with a total of 299"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q", want)
				}
			}
		})
	}
}

func TestMissingFiles(t *testing.T) {
	if err := run(context.Background(), &strings.Builder{}, t.TempDir()); err == nil {
		t.Error("a folder without files is taken")
	}
}
