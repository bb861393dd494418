package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/snarkline/snarkline/alloc"
	"github.com/snarkline/snarkline/live"
	"github.com/snarkline/snarkline/pipeline"
)

// reader reads the state at each scrape.
type reader struct{ state *live.State }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("snarkline_"+name, help, labels, nil)
}

// described are the metrics that a reader gives.
type described struct {
	items, inFlight, restarts, expected, running *prometheus.Desc

	stageItems, stageFailures, stageRetries, stageRestarts *prometheus.Desc
	busy, wait, workers, atWork, queue, capacity           *prometheus.Desc

	stageMemory, live, peak, before, pooled, mapped *prometheus.Desc
	limit, reserved, waits, waitTime                *prometheus.Desc
}

func descriptions() described {
	return described{
		items:    desc("items_total", "Items that have come to an end, by outcome: done, failed, or stopped with the run.", "outcome"),
		inFlight: desc("items_in_flight", "Items in the graph."),
		restarts: desc("item_restarts_total", "How often an item was made again from its input."),
		expected: desc("items_expected", "Items there will be; absent if that is not known."),
		running:  desc("run_in_progress", "1 while the graph runs."),

		stageItems:    desc("stage_items_total", "Items that the stage is done with.", "stage"),
		stageFailures: desc("stage_failures_total", "Items that failed in the stage.", "stage"),
		stageRetries:  desc("stage_retries_total", "Calls of the stage that were repeated.", "stage"),
		stageRestarts: desc("stage_restarts_total", "Items that were made again from their input because of the stage.", "stage"),
		busy:          desc("stage_busy_seconds_total", "Time that the stage's workers have worked, all together; calls count when they end.", "stage"),
		wait:          desc("stage_wait_seconds_total", "Time that workers waited for something to do (input), or values for room (output).", "stage", "for"),
		workers:       desc("stage_workers", "Workers of the stage.", "stage"),
		atWork:        desc("stage_workers_busy", "Workers that are at an item.", "stage"),
		queue:         desc("stage_queue_length", "Values that wait before the stage; at a join, items that wait for their parts.", "stage"),
		capacity:      desc("stage_queue_capacity", "Values that have room before the stage; absent if it is not limited.", "stage"),

		stageMemory: desc("stage_memory_bytes", "Memory by stage and state: held, queued and pending are where a buffer is (in each place that refers to it), made is by whom.", "stage", "space", "state"),
		live:        desc("memory_bytes", "Tracked memory in use.", "space"),
		peak:        desc("memory_peak_bytes", "The most tracked memory that was in use at one moment.", "space"),
		before:      desc("memory_before_run_bytes", "Of the memory in use: there before the run, such as keys.", "space"),
		pooled:      desc("memory_pooled_bytes", "Freed memory that is kept for reuse.", "space"),
		mapped:      desc("memory_mapped_bytes", "Mapped files, which the system drops from memory when it must."),
		limit:       desc("budget_limit_bytes", "What items in flight may reserve.", "space"),
		reserved:    desc("budget_reserved_bytes", "What items in flight have reserved.", "space"),
		waits:       desc("budget_waits_total", "Items that had to wait for the budget."),
		waitTime:    desc("budget_wait_seconds_total", "Time that items have waited for the budget."),
	}
}

// Describe gives nothing: which metrics there are depends on the graph, so the
// registry checks them as they are collected.
func (r *reader) Describe(chan<- *prometheus.Desc) {}

// Collect is for the registry.
func (r *reader) Collect(ch chan<- prometheus.Metric) {
	s, d := r.state.Snapshot(), descriptions()
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	count := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, v, labels...)
	}
	count(d.items, float64(s.Done), "done")
	count(d.items, float64(s.Failed), "failed")
	count(d.items, float64(s.Stopped), "stopped")
	count(d.restarts, float64(s.Again))
	gauge(d.inFlight, float64(s.InFlight))
	if s.Total > 0 {
		gauge(d.expected, float64(s.Total))
	}
	running := 0.0
	if s.Phase == "running" {
		running = 1
	}
	gauge(d.running, running)
	for i := range s.Stages {
		stageMetrics(&s.Stages[i], d, gauge, count)
	}
	for _, l := range s.Spaces {
		gauge(d.live, float64(l.Live), l.Space)
		gauge(d.peak, float64(l.Peak), l.Space)
		gauge(d.before, float64(l.Base), l.Space)
		if space, err := alloc.ParseSpace(l.Space); err == nil {
			gauge(d.pooled, float64(alloc.Default().Pooled(space)), l.Space)
		}
		if l.Limit > 0 {
			gauge(d.limit, float64(l.Limit), l.Space)
			gauge(d.reserved, float64(l.Reserved), l.Space)
		}
	}
	gauge(d.mapped, float64(alloc.Default().Mapped()))
	if b := s.Budget; b != nil {
		count(d.waits, float64(b.Waits))
		count(d.waitTime, b.WaitTime.Seconds())
	}
}

func stageMetrics(st *live.Stage, d described, gauge, count func(*prometheus.Desc, float64, ...string)) {
	count(d.stageItems, float64(st.Items), st.Name)
	count(d.stageFailures, float64(st.Failed), st.Name)
	count(d.stageRestarts, float64(st.Restarts), st.Name)
	count(d.wait, st.WaitOut.Seconds(), st.Name, "output")
	if st.Workers > 0 {
		count(d.stageRetries, float64(st.Retries), st.Name)
		count(d.busy, st.Busy.Seconds(), st.Name)
		count(d.wait, st.WaitIn.Seconds(), st.Name, "input")
		gauge(d.workers, float64(st.Workers), st.Name)
		gauge(d.atWork, float64(st.Running), st.Name)
	}
	if st.Kind != pipeline.KindSource {
		gauge(d.queue, float64(st.Queue), st.Name)
	}
	if st.Capacity > 0 {
		gauge(d.capacity, float64(st.Capacity), st.Name)
	}
	for state, l := range map[string]pipeline.Level{"held": st.Held, "queued": st.Queued, "pending": st.Pending, "made": st.Made} {
		for sp := range l.Now {
			if l.Peak[sp] > 0 { // there was some: then also when there is none now
				gauge(d.stageMemory, float64(l.Now[sp]), st.Name, alloc.Space(sp).String(), state)
			}
		}
	}
}
