package runstore

// Observe records the first sight of each queued revision, by task path ("queue/file"), and
// drops the paths that are absent. A revision already observed keeps its time; nothing
// changed, nothing written. Spec: "Queue, validation and accepted transitions".
func (tx *Tx) Observe(queued map[string]Revision) {
	h := &tx.View.h
	before := h.observations
	before.each(func(path string, _ *Observation) bool {
		if _, still := queued[path]; !still {
			h.observations = h.observations.del(path)
			tx.touch(inObservations, path)
		}
		return true
	})
	changed := h.observations.len() != before.len()
	for _, path := range sortedKeys(queued) {
		if old := lookup(before, path); old != nil && old.TaskRevision == queued[path] {
			continue
		}
		h.putObservation(path, &Observation{TaskRevision: queued[path], FirstObservedAt: tx.at()})
		tx.touch(inObservations, path)
		changed = true
	}
	if changed {
		tx.Emit("queue_observations_changed", "", map[string]any{"candidates": len(queued)})
	}
}
