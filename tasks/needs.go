package tasks

import (
	"fmt"
	"slices"

	"greatminds/contract"
)

// Needs says which facts Effect will ask for. It judges nothing: a decision that is refused
// whatever the facts are may ask for none.
func Needs(s *contract.Schema, t *Task, d Decision) FactNeeds {
	var n FactNeeds
	e := &effect{decision: d} // only for its readers of the payload; its faults are not looked at
	for _, name := range e.list("artifacts") {
		n.Artifacts = addPath(n.Artifacts, name)
	}
	n.Commands = slices.Clone(e.list("command_evidence"))
	var blocks []Block
	items, _ := d.Payload["blocks"].([]any)
	for i, item := range items {
		object, _ := item.(map[string]any)
		kind, _ := object["kind"].(string)
		fields, _ := fieldsFromJSON(object, fmt.Sprintf("payload.blocks[%d]", i), 0)
		b := Block{Kind: contract.BlockKind(kind), Fields: fields}
		blocks = append(blocks, b)
		n.ofBlock(&b)
	}
	to, _ := d.Payload["to_queue"].(string)
	n.ofMove(t.with(blocks), contract.Queue(to))
	return n
}

// ofBlock adds what a new block asks for.
func (n *FactNeeds) ofBlock(b *Block) {
	switch b.Kind {
	case blockImplementation:
		n.Fingerprint = true
		for _, name := range textsOf(b.Fields.Get("files")) {
			n.Files = addPath(n.Files, name)
		}
	case blockTests:
		if id := b.Text(requestField); id != "" && !slices.Contains(n.Commands, id) {
			n.Commands = append(n.Commands, id)
		}
	}
}

// ofMove adds what the checks of a move ask for.
func (n *FactNeeds) ofMove(t *Task, to contract.Queue) {
	if t.Queue == queueBlocked {
		n.Dependencies = textsOf(t.Latest(blockBlocked).value("dependencies"))
	}
	if (to == queueReview || to == queueVerified) && t.Latest(blockPlan).Is("stand_required") {
		evidence, _ := t.Latest(blockTests).value("stand_evidence").(Fields) // no mapping, no lease
		n.StandLease, _ = evidence.Get("lease_id").(string)
	}
}

func addPath(names []string, name string) []string {
	if unsafePath(name) != "" || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
