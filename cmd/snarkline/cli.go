package main

const appHelp = `Groth16 proofs from a pipeline of stages, under a memory budget.`

// cli is the grammar: the global flags and the commands.
type cli struct {
	globals

	Prove   proveCmd   `cmd:"" help:"Make proofs: of one witness, or of a batch."`
	Verify  verifyCmd  `cmd:"" help:"Check a proof."`
	Setup   setupCmd   `cmd:"" help:"Make keys for development. UNSAFE: whoever runs it can forge proofs."`
	Inspect inspectCmd `cmd:"" help:"Say what is in a file: curve, counts, domain, density, sizes."`
	Export  exportCmd  `cmd:"" help:"Convert keys, proofs and witnesses between formats."`
	Demo    demoCmd    `cmd:"" help:"Prove a batch of SHA-256 partitions under a budget that makes them wait."`
	Plan    planCmd    `cmd:"" help:"Say what a run would be like with other settings, from a recording or a model."`
	Sweep   sweepCmd   `cmd:"" help:"Try every combination of some settings, for real or simulated."`
	Tune    tuneCmd    `cmd:"" help:"Find the setting for a machine, and write it down as snarkline.toml."`
	Page    reportCmd  `cmd:"" name:"report" help:"Draw a recorded run as one HTML page."`
	Trace   traceCmd   `cmd:"" help:"Look at a recording of a run, and convert it for other tools."`
	Devices devicesCmd `cmd:"" help:"List the cards that can prove, and say what is missing where there is none."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// globals are the flags that every command takes.
type globals struct {
	Budget  byteSize   `group:"pipeline" placeholder:"SIZE" help:"Host memory that items in the pipeline may take together, such as 4GiB (default: no limit)."`
	Workers int        `group:"pipeline" short:"j" placeholder:"N" help:"Processors to use (default: all)."`
	Set     []string   `group:"pipeline" sep:"none" placeholder:"STAGE.KNOB=N" help:"Set workers or capacity of a stage: synthesize.workers=4, ntt.capacity=2. Stages: ${stages}. Repeatable."`
	Config  configFlag `group:"pipeline" placeholder:"FILE" help:"Read flags, and tables [stages.NAME], from a TOML file. The command line wins."`

	deviceFlags `embed:""`

	JSON     bool  `group:"output" name:"json" help:"Print the result as JSON."`
	Quiet    bool  `group:"output" short:"q" help:"No table and no notes, errors only."`
	Progress *bool `group:"output" negatable:"" help:"Show progress (default: on a terminal)."`
	Debug    bool  `group:"output" help:"Show where errors come from."`

	Report         string `group:"measure" placeholder:"FILE" help:"Write times and memory by stage as JSON."`
	Profile        string `group:"measure" enum:",cpu,mem,trace" default:"" placeholder:"cpu|mem|trace" help:"Record a Go profile: cpu, mem or trace."`
	ProfileDir     string `group:"measure" default:"." placeholder:"DIR" help:"Where the profile goes (default: here)."`
	OffheapProfile string `group:"measure" placeholder:"FILE" help:"Write a pprof profile of peak off-heap memory by stage."`
}
